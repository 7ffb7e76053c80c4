// The role daemon (node-side.md 11). Exit status: 0 stopped in good order, 1 failed, 2 usage.
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>

namespace nvdra::roles::daemon {

int run(std::span<const std::string> arguments, const Environment& environment);

}  // namespace nvdra::roles::daemon
