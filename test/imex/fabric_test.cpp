#include "imex/fabric.hpp"

#include "catch.hpp"

namespace nvdra::imex {
namespace {

const std::string rack = "00000000-0000-0000-0000-0000000000aa";

Gpu gpu(unsigned index, FabricState state, std::string status = "",
        std::optional<std::uint32_t> clique = {}, std::string cluster = "") {
  Gpu made;
  made.index = index;
  made.name = "NVIDIA GB200";
  made.uuid = "GPU-" + std::to_string(index);
  made.state = state;
  made.status = std::move(status);
  made.clique_number = clique;
  made.cluster_uuid = std::move(cluster);
  return made;
}

Gpu member(unsigned index, std::uint32_t clique = 32766, const std::string& cluster = rack) {
  return gpu(index, FabricState::completed, "Success", clique, cluster);
}

Gpu lonely(unsigned index) {
  return gpu(index, FabricState::not_supported);
}

// "" = no clique, "!" = an error.
std::string strict(std::vector<Gpu> gpus, Unfinished unfinished = Unfinished::is_an_error) {
  const auto fabric = strict_fabric(gpus, unfinished);
  return fabric ? fabric->clique.value : "!";
}

std::string lenient(std::vector<Gpu> gpus) {
  const auto fabric = lenient_fabric(gpus);
  return fabric ? fabric->clique.value : "!";
}

}  // namespace

TEST_CASE("what a single GPU means to the strict and to the lenient rule", "[imex][fabric]") {
  struct Row {
    const char* why;
    Gpu one;
    std::string strict, lenient;
  };
  const std::string clique = rack + ".32766";
  const Row row = GENERATE_COPY(values<Row>({
      {"attached", member(0), clique, clique},
      {"no fabric", lonely(0), "", ""},
      {"not started", gpu(0, FabricState::not_started), "!", ""},
      {"in progress", gpu(0, FabricState::in_progress), "!", ""},
      {"failed", gpu(0, FabricState::completed, "Unknown Error", 1, rack), "!", ""},
      {"no status", gpu(0, FabricState::completed, "", 1, rack), "!", ""},
      {"NVLink within the node", gpu(0, FabricState::completed, "Success", 0), "", ""},
  }));
  INFO(row.why);
  CHECK(strict({row.one}) == row.strict);
  CHECK(lenient({row.one}) == row.lenient);
}

TEST_CASE("on a single-node NVLink system an unfinished fabric is no clique", "[imex][fabric]") {
  CHECK(strict({gpu(0, FabricState::in_progress)}, Unfinished::is_no_clique).empty());
  CHECK(strict({gpu(0, FabricState::completed, "Unknown Error")}, Unfinished::is_no_clique) == "!");
}

TEST_CASE("GPUs in two cliques or clusters are an error that names both", "[imex][fabric]") {
  CHECK(lenient({member(0, 1), member(1, 2)}) == "!");
  CHECK(lenient({member(0), member(1, 32766, "00000000-0000-0000-0000-0000000000bb")}) == "!");
  const std::vector<Gpu> gpus = {member(0, 1), lonely(1), member(2, 2)};
  const auto fabric = strict_fabric(gpus, Unfinished::is_an_error);
  REQUIRE_FALSE(fabric);
  CHECK_THAT(fabric.error().text(), Catch::Contains("GPU 0 (GPU-0, NVIDIA GB200) in " + rack +
                                                    ".1 and GPU 2 (GPU-2, NVIDIA GB200) in "));
}

TEST_CASE("a node without GPUs has no clique", "[imex][fabric]") {
  CHECK(strict({}).empty());
  CHECK(lenient({}).empty());
}

TEST_CASE("GPUs without clique on a node that has one are reported", "[imex][fabric]") {
  const std::vector<Gpu> gpus = {member(0), lonely(1), member(2)};
  const auto fabric = lenient_fabric(gpus);
  REQUIRE(fabric);
  CHECK(fabric->clique.value == rack + ".32766");
  CHECK_THAT(fabric->mixed, Catch::StartsWith("GPU 1 (GPU-1, NVIDIA GB200) of this node is in no"));

  const std::vector<Gpu> alike = {member(0), member(1)};
  const auto uniform = lenient_fabric(alike);
  REQUIRE(uniform);
  CHECK(uniform->mixed.empty());
}

TEST_CASE("display GPUs do not count", "[imex][fabric]") {
  for (const char* name : {"DGX Display", "NVIDIA DGX Display"}) {
    Gpu display = gpu(1, FabricState::in_progress);
    display.name = name;
    const std::vector<Gpu> gpus = {member(0), display};
    const auto fabric = strict_fabric(gpus, Unfinished::is_an_error);
    REQUIRE(fabric);
    CHECK(fabric->mixed.empty());
    CHECK(fabric->notes.size() == 1);
  }
}

TEST_CASE("the notes say what was found on each GPU", "[imex][fabric]") {
  const std::vector<Gpu> gpus = {member(0), lonely(1)};
  const auto fabric = lenient_fabric(gpus);
  REQUIRE(fabric);
  REQUIRE(fabric->notes.size() == 2);
  CHECK(fabric->notes[0] ==
        "identified fabric clique UUID/ID (device 0/GPU-0): " + rack + "/32766");
  CHECK_THAT(fabric->notes[1], Catch::StartsWith("no-clique fallback (device 1/GPU-1)"));
}

TEST_CASE("a strict error names GPU, state and the way out", "[imex][fabric]") {
  const std::vector<Gpu> gpus = {member(0), gpu(1, FabricState::in_progress)};
  const auto fabric = strict_fabric(gpus, Unfinished::is_an_error);
  REQUIRE_FALSE(fabric);
  const std::string text = fabric.error().text();
  CHECK_THAT(text, Catch::StartsWith("GPU 1 (GPU-1, NVIDIA GB200) is not attached"));
  CHECK_THAT(text, Catch::Contains("In Progress") && Catch::Contains("nvidia-smi -q -i 1") &&
                       Catch::Contains("CrashOnNVLinkFabricErrors=false"));
}

}  // namespace nvdra::imex
