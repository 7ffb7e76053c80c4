#include "imex/nvidia_smi.hpp"

#include "catch.hpp"
#include "fake/driver_root.hpp"
#include "imex/data.hpp"
#include "imex/text.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace nvdra::imex {
namespace {

using fake::FakeNode;

const std::string smi = "/usr/bin/nvidia-smi";

Result<std::vector<Gpu>> query(const FakeNode& node, Duration limit = 20s) {
  asio::io_context loop(1);
  RealTime time;
  std::optional<Result<std::vector<Gpu>>> got;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        Result<std::vector<Gpu>> gpus =
            co_await query_gpus({.here = node.path(), .host = "/host"}, time, limit);
        got = std::move(gpus);
      },
      asio::detached);
  loop.run();
  REQUIRE(got);
  return *got;
}

std::string printing(const std::string& text) {
  std::string script;
  std::string_view rest = text;
  while (const auto line = next_line(rest)) script += "out " + std::string(*line) + "\n";
  return script;
}

}  // namespace

TEST_CASE("GPUs are queried in the driver root", "[imex][nvidia_smi][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(smi, printing(sample("query-nvl72.csv")));
  const auto gpus = query(node);
  REQUIRE(gpus);
  CHECK(gpus->size() == 2);
  REQUIRE(node.asked(smi).size() == 1);
  CHECK_THAT(node.asked(smi)[0],
             Catch::EndsWith(" --query-gpu=index,name,uuid,driver_version,fabric.state,"
                             "fabric.status,fabric.cliqueId,fabric.clusterUuid "
                             "--format=csv,noheader"));
}

TEST_CASE("a driver without fabric fields is asked for its report", "[imex][nvidia_smi][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(smi, "out Field \"fabric.state\" is not a valid field to query.\nexit 2");
  node.file(smi + ".does-q", printing(sample("report-535.txt")));
  const auto gpus = query(node);
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 2);
  CHECK(gpus->front().state == FabricState::not_supported);
}

TEST_CASE("a node whose tool finds no GPU has none", "[imex][nvidia_smi][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(smi, "out No devices were found\nexit 6");
  const auto gpus = query(node);
  REQUIRE(gpus);
  CHECK(gpus->empty());
}

TEST_CASE("a tool that fails, hangs, prints garbage or is missing is one sentence",
          "[imex][nvidia_smi][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  const auto says = [&](const std::string& does, Duration limit) {
    if (!does.empty()) node.tool(smi, does);
    const auto gpus = query(node, limit);
    REQUIRE_FALSE(gpus);
    return gpus.error().text();
  };
  CHECK_THAT(says("", 20s), Catch::StartsWith("nvidia-smi not found in the driver root /host"));
  CHECK_THAT(
      says("out NVIDIA-SMI has failed because it could not talk to the driver.\nexit 9", 20s),
      Catch::Contains("exit status 9 and printed: NVIDIA-SMI has failed"));
  CHECK_THAT(says("out garbage", 20s), Catch::Contains("\"garbage\""));
  CHECK_THAT(says("wait /never", 200ms), Catch::Contains("gave no answer within 0.2 s"));
}

}  // namespace nvdra::imex
