#include "roles/kubelet_plugin/base_spec.hpp"

#include "base/log.hpp"
#include "cdi/names.hpp"
#include "cdi/render.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

// The container runtime of NVIDIA adds nothing of its own.
constexpr std::string_view no_other_devices = "NVIDIA_VISIBLE_DEVICES=void";

const std::vector<std::string>& read_only() {
  static const std::vector<std::string> options{"ro", "nosuid", "nodev", "rbind", "rprivate"};
  return options;
}

bool for_everybody(const cdi::DeviceNode& node) {
  return node.file_mode && (*node.file_mode & 0006) == 0006;
}

}  // namespace

cdi::Spec base_spec(const DriverFiles& files, const Roots& roots) {
  cdi::Spec spec{std::string(cdi::device_kind)};
  cdi::Device all{"all"};
  all.edits.device_nodes = files.devices;
  for (const cdi::DeviceNode& node : files.devices)
    if (node.gid && !for_everybody(node)) all.edits.additional_gids.push_back(*node.gid);
  for (cdi::DeviceNode& node : all.edits.device_nodes)
    if (node.host_path == node.path) node.host_path.clear();
  // Runtimes refuse a file with a device that changes nothing.
  if (all.edits.device_nodes.empty()) all.edits.env.emplace_back(no_other_devices);
  spec.devices.push_back(std::move(all));

  if (!files.library_directories.empty())
    spec.edits.env.push_back(
        fmt::format("{}={}", library_path_variable, fmt::join(files.library_directories, ":")));
  spec.edits.env.emplace_back(no_other_devices);
  for (const auto* kind : {&files.tools, &files.libraries})
    for (const auto& [inside, real] : *kind)
      spec.edits.mounts.push_back({real, inside, read_only()});
  return cdi::with_host_paths(std::move(spec), roots.container, roots.host);
}

Result<void> BaseSpec::refresh(std::string_view version, bool complete) {
  DriverFiles files = find_driver_files({roots_.container, roots_.host}, version);
  if (complete && !files.missing.empty())
    return refuse(
        fmt::format("the IMEX daemon cannot run on this node: {}", fmt::join(files.missing, "; ")));
  cdi::Spec wanted = base_spec(files, roots_);
  if (cdi_.holds(cdi::base_file(), wanted)) return ok();
  LOG_INFO(1, "Writing the CDI file of the driver",
           {{"devices", files.devices.size()},
            {"libraries", files.libraries.size()},
            {"tools", files.tools.size()}});
  return cdi_.put(cdi::base_file(), wanted);
}

}  // namespace nvdra::roles::kubelet_plugin
