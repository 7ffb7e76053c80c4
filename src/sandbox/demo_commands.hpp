// The commands of nvdra-sandbox that play a whole cluster. Exit status: 0 it went well, 1 it did
// not (the reason is on stderr), 2 usage.
#pragma once

#include "base/args.hpp"
#include "sandbox/demo_cluster.hpp"

#include <functional>
#include <span>
#include <string>

namespace nvdra::sandbox {

// demo [driver-managed|host-managed] [--nvdra FILE] [--keep]; without a name all of them
int run_demo(std::span<const std::string> arguments);
// up [--nodes N] [--imex-mode MODE] [--nvdra FILE] [--folder DIRECTORY] [--port PORT]
int run_up(std::span<const std::string> arguments);
// on NODE COMMAND…: on a node of the sandbox that `up` runs.
int run_on(std::span<const std::string> arguments);

// For commands of this kind: a sentence on stderr; returns `status`.
int complain(std::string_view command, const Error& error, int status);
// Runs `body` in a cluster whose folder is removed at the end (but for --keep); nvdra is the one of
// --nvdra. True when a signal has stopped it.
Result<bool> run_in_folder(ClusterOptions options, const Args& args,
                           std::function<Async<Result<void>>(Cluster&)> body);

}  // namespace nvdra::sandbox
