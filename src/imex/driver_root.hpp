// The driver root: the directory below which the NVIDIA driver of the node lies, "/" or for example
// /run/nvidia/driver. A container sees it elsewhere (/driver-root), so it has two names.
// Search rules: node-side.md 3.5.
#pragma once

#include "base/result.hpp"

#include <span>
#include <string>
#include <string_view>

namespace nvdra::imex {

struct DriverRoot {
  std::string here = "/";  // as this process sees it
  std::string host = "/";  // as the administrator knows it; only for sentences

  // `path` is absolute within the root.
  std::string host_path(std::string_view path) const;
};

// A file of the driver root.
struct Found {
  std::string inside;  // path within the root where it was found; for Command::program with a root
  std::string real;    // all links resolved, as this process opens it
};

// Searched in this order; "/" is the root itself.
std::span<const std::string_view> binary_directories();
std::span<const std::string_view> library_directories();

// The first regular file of that name. Links are resolved as if the root were "/", so that they
// never lead out of it; whatever is not a regular file in the end is passed over. The error says
// "<name> not found", which directories were searched, and what to check.
Result<Found> find_binary(const DriverRoot& root, std::string_view name);
Result<Found> find_library(const DriverRoot& root, std::string_view name);

// "<name> not found in the driver root <host> (searched /, /opt/bin, …)", without a remedy.
std::string not_found(const DriverRoot& root, std::string_view name,
                      std::span<const std::string_view> directories);

// `path` below `root` with every link resolved inside `root`, "..": likewise. ENOENT, ENOTDIR,
// ELOOP, EACCES as the kernel would say. The answer starts with `root`.
Result<std::string> resolve_in_root(const std::string& root, std::string_view path);

// True when `root` is a directory.
bool exists(const DriverRoot& root);

// The root that holds the device nodes: the driver root if it has a directory dev, else "/".
DriverRoot dev_root(const DriverRoot& root);

}  // namespace nvdra::imex
