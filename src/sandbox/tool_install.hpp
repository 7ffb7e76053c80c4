// Putting the simulated tools into a driver root or any other folder.
#pragma once

#include "base/result.hpp"

#include <string>

namespace nvdra::sandbox {

// Makes nvidia-smi, nvidia-imex and nvidia-imex-ctl in `directory` (created if missing), each this
// very program: a hard link where possible, else a copy. Existing files are replaced by new ones,
// so a running tool is not disturbed.
Result<void> install_tools(const std::string& directory);
// One of them.
Result<void> install_tool(const std::string& directory, const std::string& name);

}  // namespace nvdra::sandbox
