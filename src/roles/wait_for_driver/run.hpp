// nvdra wait-for-driver: the plugin's init container. Waits until the driver root is usable and
// says what is missing (node-side.md 15.1, cluster-side.md 7.8).
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>

namespace nvdra::roles::wait_for_driver {

// Links /driver-root to the root's directory below /driver-root-parent, then looks every 10 s, and
// as soon as something changes there, until nvidia-smi and libnvidia-ml.so.1 exist and
// `nvidia-smi --version` succeeds. Each look is one line on stdout; every sixth adds hints.
// Exit status: 0 usable, or ended by SIGTERM or SIGINT; 1 the link cannot be made; 2 usage.
int run(std::span<const std::string> arguments, const Environment& environment);

}  // namespace nvdra::roles::wait_for_driver
