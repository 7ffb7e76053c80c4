// Putting the simulated tools into a driver root or any other folder.
#pragma once

#include "base/result.hpp"

#include <span>
#include <string>

namespace nvdra::sandbox {

// Makes nvidia-smi, nvidia-imex and nvidia-imex-ctl in `directory` (created if missing), each the
// program nvdra-sandbox: a hard link where possible, else a copy. Existing files are replaced by
// new ones, so a running tool is not disturbed.
Result<void> install_tools(const std::string& directory, const std::string& program);
// One of them.
Result<void> install_tool(const std::string& directory, const std::string& program,
                          const std::string& name);

// This very program's file.
Result<std::string> own_program();

// The command `tools DIRECTORY`.
int run_tools_command(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
