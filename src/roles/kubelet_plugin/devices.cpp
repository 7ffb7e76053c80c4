#include "roles/kubelet_plugin/devices.hpp"

#include "base/try.hpp"
#include "cdi/names.hpp"
#include "cdi/render.hpp"
#include "imex/channel.hpp"
#include "imex/device_major.hpp"

#include <sys/sysmacros.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

cdi::DeviceNode node_of(const imex::Channel& channel) {
  cdi::DeviceNode node;
  node.path = channel.path;
  node.major = major(channel.device);
  node.minor = minor(channel.device);
  node.file_mode = imex::channel_mode;
  return node;
}

}  // namespace

Result<cdi::Spec> channel_spec(const ClaimUid& claim, const std::vector<ConfigGroup>& groups,
                               const Roots& roots, bool all_allowed) {
  TRY(std::uint32_t major, imex::read_device_major(roots.proc_devices, imex::channel_class));
  cdi::Spec spec{std::string(cdi::claim_kind)};
  for (const ConfigGroup& group : groups) {
    const auto* config = std::get_if<ChannelConfig>(&group.config);
    if (!config) continue;
    for (const dra::AllocatedDevice& allocated : group.devices) {
      cdi::Device device{cdi::claim_device(claim, allocated.device)};
      unsigned own = *imex::channel_number(allocated.device);
      bool all = all_allowed && config->all();
      for (unsigned n = all ? 0 : own; n < (all ? imex::channel_count : own + 1); ++n)
        device.edits.device_nodes.push_back(node_of(imex::channel(n, major)));
      spec.devices.push_back(std::move(device));
    }
  }
  return cdi::with_host_paths(std::move(spec), roots.container, roots.host);
}

std::vector<dra::DeviceGroup> prepared_groups(const ClaimUid& claim,
                                              const std::vector<ConfigGroup>& groups,
                                              bool with_edits) {
  std::vector<dra::DeviceGroup> prepared;
  for (const ConfigGroup& group : groups) {
    dra::DeviceGroup out;
    out.type = group.is_channel() ? "channel" : "daemon";
    out.domain = group.domain();
    for (const dra::AllocatedDevice& allocated : group.devices) {
      DeviceName name = *parse_device_name(allocated.device);
      dra::PreparedDevice device{{allocated.request}, allocated.pool, allocated.device, {}};
      if (!group.is_channel()) device.cdi_ids.push_back(cdi::base_device_id());
      if (with_edits) device.cdi_ids.push_back(cdi::claim_device_id(claim, allocated.device));
      out.devices.push_back({name.kind, name.id, std::move(device)});
    }
    prepared.push_back(std::move(out));
  }
  return prepared;
}

}  // namespace nvdra::roles::kubelet_plugin
