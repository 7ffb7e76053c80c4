// The role kubelet-plugin (node-side.md 3). Exit status: 0 stopped in good order, 1 failed, 2
// usage.
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>

namespace nvdra::roles::kubelet_plugin {

int run(std::span<const std::string> arguments, const Environment& environment);

}  // namespace nvdra::roles::kubelet_plugin
