// The demonstration itself, as a spectator would start it.
#include "base/process.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"

#include <boost/asio/io_context.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace nvdra::sandbox {
namespace {

using Words = std::vector<std::string>;

const Words as_nobody = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};

struct Programs {
  std::string sandbox = NVDRA_SANDBOX;
  std::string nvdra = NVDRA;
};

// `demo` empty: both of them.
Output play(Words words, const Words& demo, const Programs& programs = {}) {
  words.insert(words.end(), {programs.sandbox, "demo"});
  words.insert(words.end(), demo.begin(), demo.end());
  words.insert(words.end(), {"--nvdra", programs.nvdra});
  asio::io_context loop(1);
  RealTime time;
  const Command command{.program = words[0],
                        .arguments = {words.begin() + 1, words.end()},
                        .environment = Words{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}};
  auto done = fake::run(loop, run(command, time, {.time = 100s}), 110s);
  if (!done) throw std::runtime_error(done.error().text());
  return *done;
}

void check(const Output& played, const Words& texts) {
  INFO(played.out << played.err);
  CHECK(played.exit.success());
  for (const std::string& text : texts) CHECK(played.out.find(text) != std::string::npos);
}

const Words host_managed_texts = {"$ kubectl apply -f my-workload.yaml",
                                  "IMEX channel0 is available",
                                  "No resources found",
                                  "FailedPrepareDynamicResources",
                                  "pod/my-workload condition met",
                                  "pod \"my-workload\" deleted",
                                  "All five steps went as the guide says"};
const Words driver_managed_texts = {"$ kubectl apply -f my-workload.yaml",
                                    "IMEX channel0 is available",
                                    "status: Ready",
                                    "another nvidia-imex runs",
                                    "another daemon pod is Ready",
                                    "No resources found",
                                    "All six steps went as the guide says"};

// Half a minute is what spectators have; a machine that does other work may take twice as long.
TEST_CASE("both demonstrations are played in one go, all their steps, within a minute",
          "[sandbox][demo]") {
  const Instant began = Clock::now();
  const Output played = play({}, {});
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  check(played, driver_managed_texts);
  check(played, host_managed_texts);
  WARN(fmt::format("both demonstrations took {:.1f} s (wanted 30{})", seconds,
                   seconds > 30 ? ", MISSED" : ""));
  CHECK(seconds <= 60);
}

TEST_CASE("each demonstration can be played by itself", "[sandbox][demo]") {
  const auto has_part = [](const Output& played, const char* text) {
    return played.out.find(text) != std::string::npos;
  };
  const Output host = play({}, {"host-managed"});
  check(host, host_managed_texts);
  CHECK_FALSE(has_part(host, "All six steps"));
}

TEST_CASE("the demonstrations need no root", "[sandbox][demo]") {
  if (::geteuid() != 0) {
    WARN("the tests before were not root already");
    return;
  }
  // The build folder may lie where only root may look.
  const fake::TempDir open;
  const Programs copies{open.path("nvdra-sandbox"), open.path("nvdra")};
  std::filesystem::copy_file(NVDRA_SANDBOX, copies.sandbox);
  std::filesystem::copy_file(NVDRA, copies.nvdra);
  std::filesystem::permissions(open.path(), std::filesystem::perms(0755));
  check(play(as_nobody, {"host-managed"}, copies), host_managed_texts);
  check(play(as_nobody, {"driver-managed"}, copies), driver_managed_texts);
}

TEST_CASE("without network namespaces pods have addresses of the loopback interface",
          "[sandbox][demo]") {
  const Words without_networks = {
      "unshare", "--user", "--map-root-user",
      "sh",      "-c",     "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"",
      "sh"};
  check(play(without_networks, {"driver-managed"}),
        {"Pods have addresses of the loopback interface", "All six steps went as the guide says"});
}

TEST_CASE("twenty domains on 200 simulated nodes are formed, healed and removed",
          "[sandbox][scale]") {
  asio::io_context loop(1);
  RealTime time;
  const Command command{
      .program = NVDRA_SANDBOX,
      .arguments = {"scale", "--nodes", "200", "--domains", "20", "--nvdra", NVDRA}};
  const auto done = fake::run(loop, run(command, time, {.time = 100s}), 110s);
  REQUIRE(done);
  check(*done, {"200 simulated nodes, 20 domains of 10", "all domains formed, workloads Ready",
                "everything removed"});
}

TEST_CASE("a demonstration that does not exist is refused", "[sandbox][demo]") {
  asio::io_context loop(1);
  RealTime time;
  const Command command{.program = NVDRA_SANDBOX, .arguments = {"demo", "nonsense"}};
  const auto done = fake::run(loop, run(command, time, {.time = 10s}));
  REQUIRE(done);
  CHECK(done->exit.code == 2);
  CHECK(done->err.find("driver-managed") != std::string::npos);
}

}  // namespace
}  // namespace nvdra::sandbox
