#include "roles/kubelet_plugin/metrics.hpp"

#include "roles/common/names.hpp"

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {
namespace {

std::string driver() {
  return std::string(driver_name);
}

std::vector<double> duration_bounds() {
  std::vector<double> bounds;
  for (double bound = 0.05; bound < 13; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace

Metrics::Series Metrics::make(const std::string& operation) {
  Labels labels{{"driver", driver()}, {"operation", operation}};
  return {&registry_.counter("nvidia_dra_requests_total",
                             "[ALPHA] Total number of DRA requests that succeeded.", labels),
          &registry_.histogram("nvidia_dra_request_duration_seconds",
                               "[ALPHA] Duration of DRA requests that succeeded.",
                               duration_bounds(), labels),
          &registry_.gauge("nvidia_dra_requests_inflight",
                           "[ALPHA] DRA requests in work, waiting ones too.", labels)};
}

Metrics::Metrics(Time& time, std::string node)
    : time_(time), prepare_(make("prepare")), unprepare_(make("unprepare")) {
  prepare_errors_ = &registry_.counter("nvidia_dra_node_prepare_errors_total",
                                       "[ALPHA] Failed claim preparations.",
                                       {{"driver", driver()}, {"error_type", "prepare_devices"}});
  unprepare_errors_ = &registry_.counter(
      "nvidia_dra_node_unprepare_errors_total", "[ALPHA] Failed claim unpreparations.",
      {{"driver", driver()}, {"error_type", "unprepare_devices"}});
  auto devices = [&](const char* type) {
    return &registry_.gauge("nvidia_dra_prepared_devices", "[ALPHA] Devices of prepared claims.",
                            {{"node", node}, {"driver", driver()}, {"device_type", type}});
  };
  channels_ = devices("channel");
  daemons_ = devices("daemon");
  devices("unknown");
}

void Metrics::count_devices(const dra::Checkpoint& checkpoint) {
  double channels = 0, daemons = 0;
  for (const auto& [uid, entry] : checkpoint.entries()) {
    if (entry->claim.state != dra::ClaimState::completed) continue;
    for (const dra::DeviceGroup& group : entry->claim.groups)
      for (const dra::CheckpointDevice& device : group.devices)
        (device.kind == dra::CheckpointDevice::Kind::channel ? channels : daemons) += 1;
  }
  channels_->set(channels);
  daemons_->set(daemons);
}

void Metrics::watch_fabric(Fabric fabric) {
  registry_.counter(
      "nvdra_fabric_clique_changes_total",
      "How often this node's fabric clique has become another one or was lost.", {},
      [changes = std::move(fabric.changes)] { return static_cast<double>(changes()); });
  registry_.gauge("nvdra_fabric_mixed",
                  "1 while some GPUs of this node are in no fabric clique and others are.", {},
                  [mixed = std::move(fabric.mixed)] { return mixed() ? 1.0 : 0.0; });
  registry_.gauge("nvdra_fabric_state",
                  "Fabric state of the GPU that is furthest behind, as NVML numbers it: 0 not "
                  "supported, 1 not started, 2 in progress, 3 completed; -1 = not known.",
                  {}, [state = std::move(fabric.state)] { return static_cast<double>(state()); });
}

int fabric_state_number(std::span<const imex::Gpu> gpus) {
  if (gpus.empty()) return -1;
  return static_cast<int>(std::ranges::min_element(gpus, {}, &imex::Gpu::state)->state);
}

Metrics::Running::Running(Metrics& metrics, Operation operation)
    : metrics_(metrics), operation_(operation), begun_(metrics.time_.now()) {
  metrics_.series(operation_).in_flight->add(1);
}

Metrics::Running::~Running() {
  metrics_.series(operation_).in_flight->add(-1);
}

void Metrics::Running::succeeded() {
  Series& series = metrics_.series(operation_);
  series.requests->add();
  series.duration->observe(std::chrono::duration<double>(metrics_.time_.now() - begun_).count());
}

}  // namespace nvdra::roles::kubelet_plugin
