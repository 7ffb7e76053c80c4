// The files of a simulated GPU node, below one directory:
//   driver/     the driver root: tools, library, device nodes, capabilities, the configuration of
//               the administrator's nvidia-imex.service
//   devices     what /proc/devices would be, with NVIDIA's classes
//   plugins, plugins_registry, cdi, pods, logs   the kubelet's (kubelet_node.hpp)
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

inline constexpr std::string_view imex_socket = "/etc/nvidia-imex/imex_ctrl.sock";

struct NodeLayout {
  std::string name;
  std::string folder;
  std::string address;
  std::vector<std::string> peers;  // addresses of the NVLink domain's nodes, this one included
  std::string cluster_uuid;
  unsigned clique = 1;
  unsigned number = 1;  // distinguishes the GPUs' UUIDs
  std::string program;  // nvdra-sandbox, which the tools are

  std::string driver_root() const { return folder + "/driver"; }
  std::string proc_devices() const { return folder + "/devices"; }
};

// Creates everything. Without the right to make device nodes, /dev/null is bound in their places;
// remove_node_mounts() undoes that before the folder is removed.
Result<void> lay_out(const NodeLayout& node);
void remove_node_mounts(const NodeLayout& node);

}  // namespace nvdra::sandbox
