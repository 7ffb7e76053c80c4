#include "roles/kubelet_plugin/devices.hpp"

#include "base/try.hpp"
#include "cdi/names.hpp"
#include "cdi/render.hpp"
#include "imex/channel.hpp"
#include "imex/device_major.hpp"

#include <fmt/format.h>
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

void add_channels(cdi::Spec& spec, const ClaimUid& claim, const ConfigGroup& group,
                  std::uint32_t major, AllChannels* all_channels) {
  bool all = all_channels && std::get<ChannelConfig>(group.config).all();
  for (const dra::AllocatedDevice& allocated : group.devices) {
    cdi::Device device{cdi::claim_device(claim, allocated.device)};
    if (all) {
      device.edits.shared_nodes = all_channels->nodes(major);
    } else {
      unsigned own = *imex::channel_number(allocated.device);
      device.edits.device_nodes = {node_of(imex::channel(own, major))};
    }
    spec.devices.push_back(std::move(device));
  }
}

Result<cdi::DeviceNode> management_node(const Roots& roots) {
  TRY(std::uint32_t major, imex::read_device_major(roots.proc_devices, imex::capability_class));
  TRY(imex::Capability capability, imex::read_capability(roots.capability));
  cdi::DeviceNode node;
  node.path = imex::capability_device_path(capability.minor);
  node.major = major;
  node.minor = capability.minor;
  node.file_mode = capability.mode;
  return node;
}

Result<cdi::ContainerEdits> daemon_edits(const ConfigGroup& group, const Roots& roots,
                                         const ClaimSetting& setting) {
  const DomainUid& uid = group.domain();
  auto domain = setting.domains.find(uid);
  if (domain == setting.domains.end())
    return refuse(fmt::format("ComputeDomain with UID {} is not known", uid.value));
  cdi::ContainerEdits edits;
  edits.env = {"CLIQUE_ID=" + setting.clique.value, "COMPUTE_DOMAIN_UUID=" + uid.value,
               "COMPUTE_DOMAIN_NAME=" + domain->second.name,
               "COMPUTE_DOMAIN_NAMESPACE=" + domain->second.space};
  if (!setting.clique.empty()) {
    TRY(cdi::DeviceNode node, management_node(roots));
    edits.device_nodes.push_back(std::move(node));
  }
  return edits;
}

}  // namespace

std::shared_ptr<const cdi::SharedNodes> AllChannels::nodes(std::uint32_t major) {
  if (nodes_ && major_ == major) return nodes_;
  cdi::Device every{"every channel"};
  for (unsigned number = 0; number < imex::channel_count; ++number)
    every.edits.device_nodes.push_back(node_of(imex::channel(number, major)));
  cdi::Spec spec{std::string(cdi::claim_kind), {std::move(every)}};
  cdi::Spec moved = cdi::with_host_paths(std::move(spec), container_, host_);
  nodes_ =
      std::make_shared<const cdi::SharedNodes>(std::move(moved.devices.front().edits.device_nodes));
  major_ = major;
  ++made_;
  return nodes_;
}

Result<cdi::Spec> claim_spec(const ClaimUid& claim, const std::vector<ConfigGroup>& groups,
                             const Roots& roots, const ClaimSetting& setting,
                             AllChannels& all_channels) {
  cdi::Spec spec{std::string(cdi::claim_kind)};
  std::map<std::string, cdi::Mount> directories;  // these are the host's paths already
  for (const ConfigGroup& group : groups) {
    if (group.is_channel()) {
      if (!setting.clique.empty()) {
        TRY(std::uint32_t major, imex::read_device_major(roots.proc_devices, imex::channel_class));
        add_channels(spec, claim, group, major, setting.all_allowed ? &all_channels : nullptr);
      }
      continue;
    }
    TRY(cdi::ContainerEdits edits, daemon_edits(group, roots, setting));
    for (const dra::AllocatedDevice& allocated : group.devices) {
      spec.devices.push_back({cdi::claim_device(claim, allocated.device), edits});
      directories[spec.devices.back().name] = {
          setting.domains_directory + "/" + group.domain().value,
          "/imexd",
          {"rw", "nosuid", "nodev", "bind"}};
    }
  }
  spec = cdi::with_host_paths(std::move(spec), roots.container, roots.host);
  for (cdi::Device& device : spec.devices)
    if (auto found = directories.find(device.name); found != directories.end())
      device.edits.mounts.push_back(found->second);
  return spec;
}

std::vector<dra::SliceDevice> published_devices(ImexMode mode) {
  std::vector<dra::SliceDevice> devices{
      {"channel-0", {{"type", "channel"}, {"id", std::int64_t{0}}}}};
  if (mode == ImexMode::driver_managed)
    devices.push_back({"daemon-0", {{"type", "daemon"}, {"id", std::int64_t{0}}}});
  return devices;
}

std::vector<dra::DeviceGroup> prepared_groups(const ClaimUid& claim,
                                              const std::vector<ConfigGroup>& groups, bool fabric) {
  std::vector<dra::DeviceGroup> prepared;
  for (const ConfigGroup& group : groups) {
    dra::DeviceGroup out;
    out.type = group.is_channel() ? "channel" : "daemon";
    out.domain = group.domain();
    bool with_edits = fabric || !group.is_channel();
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
