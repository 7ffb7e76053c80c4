#include "imex/fabric.hpp"

#include "base/try.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nvdra::imex {
namespace {

bool is_display(const Gpu& gpu) {
  return gpu.name == "DGX Display" || gpu.name == "NVIDIA DGX Display";
}

bool succeeded(const Gpu& gpu) {
  return gpu.state == FabricState::completed && gpu.status == "Success";
}

// Zero UUIDs (NVLink within one node) are read as none.
bool has_clique(const Gpu& gpu) {
  return succeeded(gpu) && !gpu.cluster_uuid.empty() && gpu.clique_number;
}

constexpr std::string_view way_out =
    "or set featureGates.CrashOnNVLinkFabricErrors=false to start without a clique";

Result<void> check(const Gpu& gpu, Unfinished unfinished) {
  switch (gpu.state) {
    case FabricState::not_supported: return ok();
    case FabricState::not_started:
    case FabricState::in_progress:
      if (unfinished == Unfinished::is_no_clique) return ok();
      return refuse(fmt::format(
          "{} is not attached to the NVLink fabric, its fabric state is {}: check the fabric "
          "manager and `nvidia-smi -q -i {}` on this node, {}",
          gpu.label(), words(gpu.state), gpu.index, way_out));
    case FabricState::completed:
      if (succeeded(gpu)) return ok();
      return refuse(fmt::format(
          "{} failed to register with the NVLink fabric, its fabric status is \"{}\": check the "
          "fabric manager and `nvidia-smi -q -i {}` on this node, {}",
          gpu.label(), gpu.status.empty() ? "N/A" : gpu.status, gpu.index, way_out));
  }
  __builtin_unreachable();
}

std::string clique_of(const Gpu& gpu) {
  return fmt::format("{}.{}", gpu.cluster_uuid, *gpu.clique_number);
}

std::string note(const Gpu& gpu) {
  if (has_clique(gpu))
    return fmt::format("identified fabric clique UUID/ID (device {}/{}): {}/{}", gpu.index,
                       gpu.uuid, gpu.cluster_uuid, *gpu.clique_number);
  return fmt::format("no-clique fallback (device {}/{}): fabric state {}, status {}, {}", gpu.index,
                     gpu.uuid, words(gpu.state), gpu.status.empty() ? "N/A" : gpu.status,
                     gpu.cluster_uuid.empty() ? "no cluster UUID" : "cluster " + gpu.cluster_uuid);
}

Result<Fabric> combine(std::span<const Gpu> gpus) {
  Fabric fabric;
  const Gpu* first = nullptr;
  std::vector<std::string> without;
  for (const Gpu& gpu : gpus) {
    if (is_display(gpu)) continue;
    fabric.notes.push_back(note(gpu));
    if (!has_clique(gpu)) {
      without.push_back(gpu.label());
      continue;
    }
    if (!first) first = &gpu;
    if (clique_of(*first) != clique_of(gpu))
      return refuse(fmt::format(
          "the GPUs of this node are in different fabric cliques, {} in {} and {} in {}: put all "
          "GPUs of a node into one NVLink partition and reset them",
          first->label(), clique_of(*first), gpu.label(), clique_of(gpu)));
  }
  if (!first) return fabric;
  fabric.clique = CliqueId(clique_of(*first));
  if (!without.empty())
    fabric.mixed = fmt::format(
        "{} of this node {} in no fabric clique although others are in {}: workloads on them "
        "cannot "
        "use multi-node NVLink; check `nvidia-smi -q` on this node",
        fmt::join(without, ", "), without.size() == 1 ? "is" : "are", fabric.clique.value);
  return fabric;
}

}  // namespace

Result<Fabric> strict_fabric(std::span<const Gpu> gpus, Unfinished unfinished) {
  for (const Gpu& gpu : gpus) {
    if (is_display(gpu)) continue;
    TRY_VOID(check(gpu, unfinished));
  }
  return combine(gpus);
}

Result<Fabric> lenient_fabric(std::span<const Gpu> gpus) {
  return combine(gpus);
}

}  // namespace nvdra::imex
