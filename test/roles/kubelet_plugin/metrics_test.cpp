#include "roles/kubelet_plugin/metrics.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::roles::kubelet_plugin;

TEST_CASE("the fabric's state is NVML's number of the GPU that is furthest behind",
          "[plugin][metrics]") {
  using enum imex::FabricState;
  std::vector<imex::Gpu> gpus;
  CHECK(fabric_state_number(gpus) == -1);
  gpus.resize(2);
  for (imex::Gpu& gpu : gpus) gpu.state = completed;
  CHECK(fabric_state_number(gpus) == 3);
  gpus[1].state = in_progress;
  CHECK(fabric_state_number(gpus) == 2);
  gpus[0].state = not_started;
  CHECK(fabric_state_number(gpus) == 1);
  gpus[1].state = not_supported;
  CHECK(fabric_state_number(gpus) == 0);

  RealTime time;
  roles::kubelet_plugin::Metrics metrics(time, "node");
  metrics.watch_fabric({.changes = [] { return 0; },
                        .mixed = [] { return false; },
                        .state = [&] { return fabric_state_number(gpus); }});
  CHECK_THAT(metrics.registry().text(), Catch::Contains("\nnvdra_fabric_state 0\n"));
}
