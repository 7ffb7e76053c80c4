// /etc/hosts of a pod: a bind mount, so it can be written but not replaced.
#pragma once

#include "imex/peers.hpp"

namespace nvdra::imex {

// Brings the lines of the slots up to date (edit_hosts) with one write. False: it was so already.
// The error names the file and what it is needed for.
Result<bool> update_hosts(const std::string& path, const std::vector<Slot>& slots);

}  // namespace nvdra::imex
