#include "cdi/render.hpp"

#include "cdi/shared_nodes.hpp"
#include "cdi/yaml.hpp"

#include <algorithm>
#include <utility>

namespace nvdra::cdi {
namespace {

template <class T>
void drop_duplicates(std::vector<T>& list) {
  std::vector<T> kept;
  for (T& one : list)
    if (std::ranges::find(kept, one) == kept.end()) kept.push_back(std::move(one));
  list = std::move(kept);
}

// The whole value breaks ties, so that duplicates are neighbours.
template <class T, class Path>
void sort_by_path(std::vector<T>& list, Path path) {
  std::ranges::sort(list, [&](const T& a, const T& b) {
    const auto depth_a = std::ranges::count(a.*path, '/');
    const auto depth_b = std::ranges::count(b.*path, '/');
    if (depth_a != depth_b) return depth_a < depth_b;
    if (a.*path != b.*path) return a.*path < b.*path;
    return a < b;
  });
  list.erase(std::ranges::unique(list).begin(), list.end());
}

// The text of shared nodes is that of a device which has no others.
void normalise(ContainerEdits& edits, bool of_device) {
  if (edits.shared_nodes && (!of_device || !edits.device_nodes.empty())) {
    const std::vector<DeviceNode>& more = edits.shared_nodes->nodes();
    edits.device_nodes.insert(edits.device_nodes.end(), more.begin(), more.end());
    edits.shared_nodes.reset();
  }
  drop_duplicates(edits.env);
  drop_duplicates(edits.hooks);
  drop_duplicates(edits.additional_gids);
  sort_by_path(edits.device_nodes, &DeviceNode::path);
  sort_by_path(edits.mounts, &Mount::container_path);
}

template <class Test>
bool any_edits(const Spec& spec, Test test) {
  return test(spec.edits) ||
         std::ranges::any_of(spec.devices, [&](const Device& d) { return test(d.edits); });
}

bool any_host_path(const std::vector<DeviceNode>& nodes) {
  return std::ranges::any_of(nodes, [](const DeviceNode& n) { return !n.host_path.empty(); });
}

std::string_view lowest_version(const Spec& spec) {
  if (any_edits(spec, [](const ContainerEdits& e) { return !e.additional_gids.empty(); }))
    return "0.7.0";
  const bool digit = std::ranges::any_of(spec.devices, [](const Device& device) {
    return !device.name.empty() && device.name[0] >= '0' && device.name[0] <= '9';
  });
  const bool host_path = any_edits(spec, [](const ContainerEdits& e) {
    return (e.shared_nodes && e.shared_nodes->with_host_path()) || any_host_path(e.device_nodes);
  });
  return digit || host_path ? "0.5.0" : "0.3.0";
}

template <class Items>
void write_list(YamlWriter& out, std::string_view name, const Items& items) {
  if (items.empty()) return;
  out.begin(name);
  for (const auto& item : items) out.item(item);
  out.end();
}

void write_if(YamlWriter& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out.key(name, text);
}

void write(YamlWriter& out, const DeviceNode& node) {
  out.key("path", node.path);
  write_if(out, "hostPath", node.host_path);
  write_if(out, "type", node.type);
  if (node.major != 0) out.key("major", node.major);
  if (node.minor != 0) out.key("minor", node.minor);
  if (node.file_mode) out.key("fileMode", *node.file_mode);
  write_if(out, "permissions", node.permissions);
  if (node.uid) out.key("uid", *node.uid);
  if (node.gid) out.key("gid", *node.gid);
}

void write(YamlWriter& out, const Hook& hook) {
  out.key("hookName", hook.hook_name);
  out.key("path", hook.path);
  write_list(out, "args", hook.args);
  write_list(out, "env", hook.env);
}

void write(YamlWriter& out, const Mount& mount) {
  out.key("hostPath", mount.host_path);
  out.key("containerPath", mount.container_path);
  write_list(out, "options", mount.options);
}

template <class T>
void write_items(YamlWriter& out, const std::vector<T>& objects) {
  for (const T& object : objects) {
    out.begin_item();
    write(out, object);
    out.end();
  }
}

template <class T>
void write_objects(YamlWriter& out, std::string_view name, const std::vector<T>& objects) {
  if (objects.empty()) return;
  out.begin(name);
  write_items(out, objects);
  out.end();
}

void write(YamlWriter& out, const ContainerEdits& edits) {
  if (edits.empty()) return out.empty_mapping("containerEdits");
  out.begin("containerEdits");
  write_list(out, "env", edits.env);
  if (edits.shared_nodes) {
    out.begin("deviceNodes");
    out.lines(edits.shared_nodes->device_text());
    out.end();
  }
  write_objects(out, "deviceNodes", edits.device_nodes);
  write_objects(out, "hooks", edits.hooks);
  write_objects(out, "mounts", edits.mounts);
  write_list(out, "additionalGids", edits.additional_gids);
  out.end();
}

// A path below `from` → the same path below `to`. Others are left alone.
void rebase(std::string& path, std::string_view from, std::string_view to) {
  while (from.ends_with('/')) from.remove_suffix(1);
  while (to.ends_with('/')) to.remove_suffix(1);
  if (!path.starts_with(from)) return;
  const std::string_view rest = std::string_view(path).substr(from.size());
  if (!rest.empty() && rest.front() != '/') return;
  std::string moved = std::string(to) + std::string(rest);
  path = moved.empty() ? "/" : std::move(moved);
}

}  // namespace

SharedNodes::SharedNodes(std::vector<DeviceNode> nodes)
    : nodes_(std::move(nodes)), with_host_path_(any_host_path(nodes_)) {
  sort_by_path(nodes_, &DeviceNode::path);
  YamlWriter out;  // down to where a device's nodes stand
  out.begin("devices");
  out.begin_item();
  out.begin("containerEdits");
  out.begin("deviceNodes");
  const std::size_t before = out.so_far().size();
  write_items(out, nodes_);
  device_text_ = out.so_far().substr(before);
}

std::string render(Spec spec) {
  normalise(spec.edits, false);
  for (Device& device : spec.devices) normalise(device.edits, true);
  std::ranges::sort(spec.devices);
  spec.devices.erase(std::ranges::unique(spec.devices).begin(), spec.devices.end());

  YamlWriter out;
  out.key("cdiVersion", lowest_version(spec));
  out.key("kind", spec.kind);
  out.begin("devices");
  for (const Device& device : spec.devices) {
    out.begin_item();
    out.key("name", device.name);
    write(out, device.edits);
    out.end();
  }
  out.end();
  if (!spec.edits.empty()) write(out, spec.edits);
  return std::move(out).text();
}

Spec with_host_paths(Spec spec, std::string_view container_root, std::string_view host_root) {
  if (container_root == host_root) return spec;
  const auto rewrite = [&](ContainerEdits& edits) {
    for (DeviceNode& node : edits.device_nodes) {
      if (node.host_path.empty()) node.host_path = node.path;
      rebase(node.host_path, container_root, host_root);
    }
    for (Mount& mount : edits.mounts) rebase(mount.host_path, container_root, host_root);
    for (Hook& hook : edits.hooks) rebase(hook.path, container_root, host_root);
  };
  rewrite(spec.edits);
  for (Device& device : spec.devices) rewrite(device.edits);
  return spec;
}

}  // namespace nvdra::cdi
