// The driver's device nodes of this host (node-side.md 8.2).
#pragma once

#include "cdi/spec.hpp"
#include "imex/driver_root.hpp"

#include <string_view>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

// Whether a daemon gets the device of this path: GPUs, control, capabilities and channels; not
// nvidia-fs*, nvidia-nvswitch* and nvidia-nvlink*. Pure.
bool is_driver_device(std::string_view path);

// Every character device of the root that is_driver_device(), with the host's real numbers, mode
// and group. host_path: as this process sees it. A host without driver has none.
std::vector<cdi::DeviceNode> find_driver_devices(const imex::DriverRoot& dev_root);

}  // namespace nvdra::roles::kubelet_plugin
