// The role controller (cluster-side.md 4). Exit status: 0 stopped in good order, 1 failed (also:
// lost leadership), 2 usage.
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>

namespace nvdra::roles::controller {

int run(std::span<const std::string> arguments, const Environment& environment);

}  // namespace nvdra::roles::controller
