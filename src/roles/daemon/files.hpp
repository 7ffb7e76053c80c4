// The files that nvidia-imex is started with, written before it is.
#pragma once

#include "roles/daemon/config.hpp"

namespace nvdra::roles::daemon {

// imexd.cfg from the template in the same directory, and, with names, nodes.cfg. What is already
// as it should be is not touched. Errors name the file and the remedy.
Result<void> write_imex_files(const Config& config);

}  // namespace nvdra::roles::daemon
