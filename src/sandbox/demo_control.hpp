// The sandbox that `up` runs, seen from other terminals: its folder, and commands on its nodes.
#pragma once

#include "sandbox/demo_cluster.hpp"

#include <span>
#include <string>

namespace nvdra::sandbox {

// Creates the folder (0700) or empties one that a sandbox has left behind. An error when another
// sandbox uses it, or when it belongs to somebody else. The sandbox keeps the lock.
Result<Fd> take_folder(const std::string& path);

// Tells the user what there is, and serves commands for nodes until cancelled.
Async<Result<void>> serve_until_stopped(Cluster& cluster);

// Runs a command on a node of the sandbox in `folder`; its output goes to stdout and stderr. The
// command's exit status.
Result<int> ask_node(const std::string& folder, const std::string& node,
                     std::span<const std::string> command);

}  // namespace nvdra::sandbox
