// What the container of an IMEX daemon needs from the driver root: tools, libraries under every
// name by which they are asked for, device nodes (node-side.md 8.2, design.md 12; reports 88, 89).
// No library cache is rebuilt in the container: the daemon starts nvidia-imex with the directories
// of these mounts as its library path.
#pragma once

#include "cdi/spec.hpp"
#include "imex/driver_root.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

struct DriverFiles {
  // Path in the container → the file as this process sees it, below the driver root.
  std::map<std::string, std::string> tools;      // "/usr/bin/nvidia-imex"
  std::map<std::string, std::string> libraries;  // "/usr/lib64/libcuda.so.1"
  std::vector<std::string> library_directories;  // in the container, in the order of the search
  std::vector<cdi::DeviceNode> devices;          // host_path: as this process sees it
  // Sentences: what nvidia-imex cannot start without.
  std::vector<std::string> missing;
};

// Whether the file of this name belongs to the driver's libraries: libnvidia-*, libcuda*,
// libnvcuvid, versioned. Of a name that ends in a driver's version (".so.570.86.15") only the
// running version's; `version` "" = unknown, all. Pure.
bool is_driver_library(std::string_view name, std::string_view version);

// Whether an image with a C library has this one itself. Pure.
bool is_system_library(std::string_view name);

// Looks into the driver root. Libraries: what is_driver_library() accepts in the root's library
// directories, also under the name that the file itself claims (SONAME), and what the tools and
// these libraries are linked against, when the root has it. Never fails: what is not there is in
// `missing`.
DriverFiles find_driver_files(const imex::DriverRoot& root, std::string_view version);

}  // namespace nvdra::roles::kubelet_plugin
