#include "imex/gpu.hpp"

#include "catch.hpp"
#include "imex/data.hpp"

namespace nvdra::imex {
namespace {

const std::string cluster = "00000000-0000-0000-0000-0000000000aa";

std::string row_with(const std::string& fabric) {
  return "0, NVIDIA GB200, GPU-1, 570.158.01, " + fabric + "\n";
}

}  // namespace

TEST_CASE("a rack's GPUs are read with their clique, the UUID in lower case", "[imex][gpu]") {
  const auto gpus = parse_gpu_query(sample("query-nvl72.csv"));
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 2);
  const Gpu& first = gpus->front();
  CHECK(first.index == 0);
  CHECK(first.name == "NVIDIA GB200");
  CHECK(first.uuid == "GPU-00000000-0000-0000-0000-000000000001");
  CHECK(first.driver_version == "570.158.01");
  CHECK(first.state == FabricState::completed);
  CHECK(first.status == "Success");
  CHECK(first.clique_number == 32766u);
  CHECK(first.cluster_uuid == cluster);
  CHECK(gpus->back().cluster_uuid == cluster);
}

TEST_CASE("GPUs without fabric say N/A in every cell", "[imex][gpu]") {
  const auto gpus = parse_gpu_query(sample("query-no-fabric.csv"));
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 2);
  for (const Gpu& gpu : *gpus) {
    CHECK(gpu.state == FabricState::not_supported);
    CHECK(gpu.status.empty());
    CHECK_FALSE(gpu.clique_number);
    CHECK(gpu.cluster_uuid.empty());
  }
}

TEST_CASE("an all-zero cluster is none, and a warning line is no GPU", "[imex][gpu]") {
  const auto gpus = parse_gpu_query(sample("query-hgx.csv"));
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 1);
  CHECK(gpus->front().state == FabricState::completed);
  CHECK(gpus->front().clique_number == 0u);
  CHECK(gpus->front().cluster_uuid.empty());
}

TEST_CASE("every fabric state is understood", "[imex][gpu]") {
  struct Row {
    const char* cells;
    FabricState state;
    const char* status;
    std::optional<std::uint32_t> clique;
  };
  const Row row = GENERATE(values<Row>({
      {"Not Supported, N/A, N/A, N/A", FabricState::not_supported, "", {}},
      {"Not Started, N/A, N/A, N/A", FabricState::not_started, "", {}},
      {"In Progress, N/A, N/A, N/A", FabricState::in_progress, "", {}},
      {"Completed, Success, 184, 00000000-0000-0000-0000-0000000000aa", FabricState::completed,
       "Success", 184u},
      {"Completed, Success, 4000000004, 00000000-0000-0000-0000-0000000000aa",
       FabricState::completed, "Success", 4000000004u},
      {"Completed, Insufficient Resources, N/A, N/A",
       FabricState::completed,
       "Insufficient Resources",
       {}},
  }));
  INFO(row.cells);
  const auto gpus = parse_gpu_query(row_with(row.cells));
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 1);
  CHECK(gpus->front().state == row.state);
  CHECK(gpus->front().status == row.status);
  CHECK(gpus->front().clique_number == row.clique);
}

TEST_CASE("a node without GPUs has an empty list", "[imex][gpu]") {
  for (const char* text : {"No devices were found\n", "", "\n"}) {
    const auto gpus = parse_gpu_query(text);
    REQUIRE(gpus);
    CHECK(gpus->empty());
    const auto report = parse_gpu_report(text);
    REQUIRE(report);
    CHECK(report->empty());
  }
}

TEST_CASE("a line that is not understood is quoted with the reason", "[imex][gpu]") {
  struct Row {
    std::string text;
    const char* reason;
  };
  const Row row = GENERATE(values<Row>({
      {"Unable to determine the device handle for GPU0: 0000:09:01.0: Unknown Error", "8 values"},
      {"0, NVIDIA GB200, GPU-1, 570.1, Completed, Success, 1", "8 values"},
      {"0, NVIDIA GB200, GPU-1, 570.1, Completed, Success, 1, N/A, N/A", "8 values"},
      {"x, NVIDIA GB200, GPU-1, 570.1, N/A, N/A, N/A, N/A", "index"},
      {"0, [N/A], GPU-1, 570.1, N/A, N/A, N/A, N/A", "name or UUID"},
      {"0, NVIDIA GB200, GPU-1, 570.1, Sleeping, N/A, N/A, N/A", "Sleeping is none of"},
      {"0, NVIDIA GB200, GPU-1, 570.1, Completed, Success, -1, N/A", "-1 is no clique number"},
      {"0, NVIDIA GB200, GPU-1, 570.1, Completed, Success, 4294967296, N/A", "no clique number"},
      {"0, NVIDIA GB200, GPU-1, 570.1, Completed, Success, 1, rack-1", "rack-1 is no UUID"},
  }));
  const auto gpus = parse_gpu_query(row_with("N/A, N/A, N/A, N/A") + row.text + "\n");
  REQUIRE_FALSE(gpus);
  CHECK_THAT(gpus.error().text(), Catch::Contains("\"" + row.text + "\""));
  CHECK_THAT(gpus.error().text(), Catch::Contains(row.reason));
}

TEST_CASE("a driver without fabric fields is recognised by its answer", "[imex][gpu]") {
  CHECK(lacks_query_field("Field \"fabric.state\" is not a valid field to query.\n"));
  CHECK_FALSE(lacks_query_field(sample("query-nvl72.csv")));
}

TEST_CASE("the Fabric section of a report is read whatever its indentation", "[imex][gpu]") {
  struct Row {
    const char* file;
    FabricState state;
    std::optional<std::uint32_t> clique;
    std::string cluster_uuid;
  };
  const Row row = GENERATE(values<Row>({
      {"report-no-fabric.txt", FabricState::not_supported, {}, ""},
      {"report-unhealthy.txt", FabricState::completed, 2u, cluster},
      {"report-healthy.txt", FabricState::completed, 1u, cluster},
      {"report-in-progress.txt", FabricState::in_progress, {}, ""},
      {"report-hgx.txt", FabricState::completed, 0u, ""},
  }));
  INFO(row.file);
  const auto gpus = parse_gpu_report(sample(row.file));
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 1);
  CHECK(gpus->front().state == row.state);
  CHECK(gpus->front().clique_number == row.clique);
  CHECK(gpus->front().cluster_uuid == row.cluster_uuid);
}

TEST_CASE("an old driver's report names its GPUs, with or without a Fabric section",
          "[imex][gpu]") {
  const auto gpus = parse_gpu_report(sample("report-535.txt"));
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 2);
  CHECK(gpus->front().label() ==
        "GPU 0 (GPU-00000000-0000-0000-0000-000000000001, NVIDIA A100-SXM4-40GB)");
  CHECK(gpus->back().index == 1);
  CHECK(gpus->back().uuid == "GPU-00000000-0000-0000-0000-000000000002");
  CHECK(gpus->back().driver_version == "535.54.03");
  CHECK(gpus->back().state == FabricState::not_supported);
}

TEST_CASE("a report's bad line and text that is no report are quoted", "[imex][gpu]") {
  const auto bad = parse_gpu_report(
      "    Fabric\n        State    : Completed\n"
      "        CliqueId : many\n        Health\n");
  REQUIRE_FALSE(bad);
  CHECK_THAT(bad.error().text(), Catch::Contains("\"CliqueId : many\""));

  const auto other = parse_gpu_report("\nhello\nworld\n");
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().text(), Catch::Contains("\"hello\""));
}

}  // namespace nvdra::imex
