#include "sandbox/tool_smi.hpp"

#include "catch.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

NodeFacts facts(std::string version, imex::FabricState state = imex::FabricState::completed) {
  NodeFacts node{.driver_version = version, .imex_version = version};
  for (unsigned i = 0; i < 2; ++i)
    node.gpus.push_back({.index = i,
                         .name = "NVIDIA GB200",
                         .uuid = fmt::format("GPU-00000000-0000-0000-0000-00000000000{}", i + 1),
                         .driver_version = version,
                         .state = state,
                         .status = "Success",
                         .clique_number = 32766,
                         .cluster_uuid = "00000000-0000-0000-0000-0000000000aa"});
  return node;
}

std::vector<std::string> query() {
  return {fmt::format("--query-gpu={}", imex::gpu_query_fields), "--format=csv,noheader"};
}

TEST_CASE("the CSV query gives what the parser of the driver reads", "[sandbox][tool]") {
  const NodeFacts node = facts("580.95.05");
  const ToolAnswer answer = nvidia_smi(node, query(), "now");
  CHECK(answer.status == 0);
  CHECK(answer.out.find("0, NVIDIA GB200, GPU-00000000-0000-0000-0000-000000000001, 580.95.05, "
                        "Completed, Success, 32766, 00000000-0000-0000-0000-0000000000aa\n") == 0);
  const auto gpus = imex::parse_gpu_query(answer.out);
  REQUIRE(gpus);
  CHECK(*gpus == node.gpus);
}

TEST_CASE("the text report gives the same GPUs as the query", "[sandbox][tool]") {
  for (const char* version : {"570.158.01", "580.95.05", "595.58.03"}) {
    const NodeFacts node = facts(version);
    const std::vector<std::string> report = {"-q"};
    const auto gpus = imex::parse_gpu_report(nvidia_smi(node, report, "now").out);
    REQUIRE(gpus);
    CHECK(*gpus == node.gpus);
  }
}

TEST_CASE("without a fabric its fields are N/A, while it registers only the state is known",
          "[sandbox][tool]") {
  const auto none = nvidia_smi(facts("580.95.05", imex::FabricState::not_supported), query(), "");
  CHECK(none.out.find(", N/A, N/A, N/A, N/A\n") != std::string::npos);
  const auto busy = nvidia_smi(facts("580.95.05", imex::FabricState::in_progress), query(), "");
  CHECK(busy.out.find(", In Progress, N/A, N/A, N/A\n") != std::string::npos);
  const std::vector<std::string> report = {"-q"};
  const auto gpus = imex::parse_gpu_report(
      nvidia_smi(facts("580.95.05", imex::FabricState::in_progress), report, "").out);
  REQUIRE(gpus);
  CHECK(gpus->at(1).state == imex::FabricState::in_progress);
}

TEST_CASE("an old driver does not know the fabric's query fields", "[sandbox][tool]") {
  const ToolAnswer answer = nvidia_smi(facts("535.54.03"), query(), "now");
  CHECK(answer.status != 0);
  CHECK(imex::lacks_query_field(answer.out));
  const std::vector<std::string> report = {"-q"};
  const auto gpus = imex::parse_gpu_report(nvidia_smi(facts("535.54.03"), report, "").out);
  REQUIRE(gpus);
  CHECK(gpus->at(0).state == imex::FabricState::completed);
  CHECK_FALSE(gpus->at(0).clique_number);
}

TEST_CASE("XML has the fabric's elements of each generation in their mixed spelling",
          "[sandbox][tool]") {
  const std::vector<std::string> xml = {"-q", "-x"};
  const std::string old = nvidia_smi(facts("535.54.03"), xml, "now").out;
  CHECK(old.find("<fabric>\n\t\t\t<state>Completed</state>\n\t\t\t<status>Success</status>\n"
                 "\t\t</fabric>") != std::string::npos);
  const std::string newest = nvidia_smi(facts("595.58.03"), xml, "now").out;
  CHECK(newest.find("<cliqueId>32766</cliqueId>") != std::string::npos);
  CHECK(newest.find("<clusterUuid>00000000-0000-0000-0000-0000000000aa</clusterUuid>") !=
        std::string::npos);
  CHECK(newest.find("<health>\n\t\t\t\t<summary>Healthy</summary>") != std::string::npos);
  CHECK(newest.find("<route_unhealthy>False</route_unhealthy>") != std::string::npos);
}

TEST_CASE("one GPU can be chosen; a node without any says so", "[sandbox][tool]") {
  const std::vector<std::string> second = {"-i", "1", "-L"};
  CHECK(nvidia_smi(facts("580.95.05"), second, "").out ==
        "GPU 1: NVIDIA GB200 (UUID: GPU-00000000-0000-0000-0000-000000000002)\n");
  NodeFacts empty = facts("580.95.05");
  empty.gpus.clear();
  const ToolAnswer none = nvidia_smi(empty, query(), "");
  CHECK(none.out == "No devices were found\n");
  CHECK(none.status == 6);
}

TEST_CASE("what the tool does not know is refused", "[sandbox][tool]") {
  const std::vector<std::string> unknown = {"--reset"};
  CHECK(nvidia_smi(facts("580.95.05"), unknown, "").status == 1);
  const std::vector<std::string> no_format = {"--query-gpu=index"};
  CHECK(nvidia_smi(facts("580.95.05"), no_format, "").status == 2);
}

}  // namespace
}  // namespace nvdra::sandbox
