// `daemon check`: the probe (node-side.md 11.2). Exit status 0: ready; 1: not, and why on stdout,
// where the kubelet takes the text of its event from.
#pragma once

#include "roles/daemon/config.hpp"

namespace nvdra::roles::daemon {

int check(const Config& config);

}  // namespace nvdra::roles::daemon
