// /proc/driver/nvidia of this container: masking mounts of the NVIDIA container runtime are taken
// away (node-side.md 3.8); MASK_NVIDIA_DRIVER_PARAMS puts one of our own over `params`, so that
// tools run here do not make device nodes (15).
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

// The mount points at and below `directory` in the text of /proc/self/mountinfo, deepest first.
// Pure.
std::vector<std::string> mounts_below(std::string_view mountinfo, std::string_view directory);

// Unmounts them. Nothing mounted, or no such directory: success.
Result<void> unmount_driver_proc();

// `params` with "ModifyDeviceFiles: 0". Pure.
std::string masked_params(std::string_view params);

// Binds an edited copy, kept in `plugin_directory`, over /proc/driver/nvidia/params. No such file:
// success.
Result<void> mask_driver_params(const std::string& plugin_directory);

}  // namespace nvdra::roles::kubelet_plugin
