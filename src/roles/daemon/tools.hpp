// nvidia-imex and nvidia-imex-ctl as the daemon's container has them: mounted from the driver root
// by CDI (node-side.md 8.2), with their libraries beside, which no ld cache knows.
#pragma once

#include "base/process.hpp"
#include "roles/daemon/config.hpp"

namespace nvdra::roles::daemon {

// A program of the driver: looked for in PATH, then where drivers have their programs. The command
// gets this process's environment with LD_LIBRARY_PATH set to `config.library_path`, if that is
// set. The error names the program, where it was looked for, and what to check.
Result<Command> find_tool(const Config& config, const std::string& name,
                          std::vector<std::string> arguments);

// nvidia-imex -c FILE
Result<Command> imex_command(const Config& config);
// nvidia-imex-ctl -c FILE -q
Result<Command> question_command(const Config& config);
// nvidia-imex-ctl -c FILE -N -j
Result<Command> domain_command(const Config& config);

}  // namespace nvdra::roles::daemon
