#include "cdi/read.hpp"

#include "base/try.hpp"
#include "base/utf8.hpp"
#include "cdi/names.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace nvdra::cdi {
namespace {

// yaml-cpp throws; this is caught in parse().
struct Bad {
  YAML::Mark mark;
  std::string what;
};

YAML::Node member(const YAML::Node& map, const char* name) {
  if (!map.IsMap()) throw Bad{map.Mark(), fmt::format("a mapping with {} was expected", name)};
  return map[name];
}

std::string text_of(const YAML::Node& node, const char* name) {
  if (!node.IsScalar()) throw Bad{node.Mark(), fmt::format("{} is no text", name)};
  return node.Scalar();
}

void read(const YAML::Node& map, const char* name, std::string& into) {
  if (const YAML::Node node = member(map, name); node.IsDefined()) into = text_of(node, name);
}

void read(const YAML::Node& map, const char* name, std::uint32_t& into) {
  const YAML::Node node = member(map, name);
  if (!node.IsDefined()) return;
  if (!node.IsScalar() || !YAML::convert<std::uint32_t>::decode(node, into))
    throw Bad{node.Mark(), fmt::format("{} is no number", name)};
}

void read(const YAML::Node& map, const char* name, std::optional<std::uint32_t>& into) {
  std::uint32_t number = 0;
  read(map, name, number);
  if (member(map, name).IsDefined()) into = number;
}

template <class Each>
void each(const YAML::Node& map, const char* name, Each take) {
  const YAML::Node list = member(map, name);
  if (!list.IsDefined() || list.IsNull()) return;
  if (!list.IsSequence()) throw Bad{list.Mark(), fmt::format("{} is no list", name)};
  for (const YAML::Node& item : list) take(item);
}

void read(const YAML::Node& map, const char* name, std::vector<std::string>& into) {
  each(map, name, [&](const YAML::Node& item) { into.push_back(text_of(item, name)); });
}

DeviceNode device_node(const YAML::Node& map) {
  DeviceNode node{.path = "", .type = ""};
  read(map, "path", node.path);
  read(map, "hostPath", node.host_path);
  read(map, "type", node.type);
  read(map, "major", node.major);
  read(map, "minor", node.minor);
  read(map, "fileMode", node.file_mode);
  read(map, "permissions", node.permissions);
  read(map, "uid", node.uid);
  read(map, "gid", node.gid);
  return node;
}

Hook hook(const YAML::Node& map) {
  Hook hook{.hook_name = "", .path = ""};
  read(map, "hookName", hook.hook_name);
  read(map, "path", hook.path);
  read(map, "args", hook.args);
  read(map, "env", hook.env);
  return hook;
}

Mount mount(const YAML::Node& map) {
  Mount mount{.host_path = "", .container_path = ""};
  read(map, "hostPath", mount.host_path);
  read(map, "containerPath", mount.container_path);
  read(map, "options", mount.options);
  return mount;
}

ContainerEdits container_edits(const YAML::Node& parent) {
  ContainerEdits edits;
  const YAML::Node map = member(parent, "containerEdits");
  if (!map.IsDefined() || map.IsNull()) return edits;
  read(map, "env", edits.env);
  each(map, "deviceNodes", [&](const auto& n) { edits.device_nodes.push_back(device_node(n)); });
  each(map, "hooks", [&](const auto& n) { edits.hooks.push_back(hook(n)); });
  each(map, "mounts", [&](const auto& n) { edits.mounts.push_back(mount(n)); });
  each(map, "additionalGids", [&](const YAML::Node& n) {
    std::uint32_t gid = 0;
    if (!n.IsScalar() || !YAML::convert<std::uint32_t>::decode(n, gid))
      throw Bad{n.Mark(), "additionalGids holds something that is no number"};
    edits.additional_gids.push_back(gid);
  });
  return edits;
}

Spec spec(const YAML::Node& map) {
  Spec spec;
  read(map, "kind", spec.kind);
  each(map, "devices", [&](const YAML::Node& item) {
    Device device{.name = ""};
    read(item, "name", device.name);
    device.edits = container_edits(item);
    spec.devices.push_back(std::move(device));
  });
  spec.edits = container_edits(map);
  return spec;
}

}  // namespace

Result<Spec> parse(std::string_view text) try {
  if (const std::size_t bad = first_not_utf8(text); bad != std::string_view::npos)
    return refuse(fmt::format("the CDI file is no UTF-8 text: see byte {}", bad + 1));
  return spec(YAML::Load(std::string(text)));
} catch (const Bad& bad) {
  return refuse(fmt::format("line {} of the CDI file: {}", bad.mark.line + 1, bad.what));
} catch (const YAML::Exception& bad) {
  return refuse(fmt::format("the CDI file is no YAML: {}", bad.what()));
}

Result<std::vector<std::string>> claim_devices(const Spec& spec, const ClaimUid& claim) {
  if (spec.kind != claim_kind)
    return refuse(fmt::format("the CDI file has kind \"{}\" and not {}", spec.kind, claim_kind));
  const std::string prefix = claim_device(claim, "");
  std::vector<std::string> devices;
  for (const Device& device : spec.devices) {
    if (!device.name.starts_with(prefix))
      return refuse(fmt::format("the CDI file's device \"{}\" does not belong to claim {}",
                                device.name, claim.value));
    devices.push_back(device.name.substr(prefix.size()));
  }
  return devices;
}

}  // namespace nvdra::cdi
