// The commands of nvdra-sandbox that play a whole cluster. Exit status: 0 it went well, 1 it did
// not (the reason is on stderr), 2 usage.
#pragma once

#include <span>
#include <string>

namespace nvdra::sandbox {

// demo [driver-managed|host-managed] [--nvdra FILE] [--keep]; without a name all of them
int run_demo(std::span<const std::string> arguments);
// up [--nodes N] [--imex-mode MODE] [--nvdra FILE] [--folder DIRECTORY] [--port PORT]
int run_up(std::span<const std::string> arguments);
// on NODE COMMAND…: on a node of the sandbox that `up` runs.
int run_on(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
