// Is this node an NVLink system of its own (HGX with switches on board)? (node-side.md 3.6.3)
#pragma once

#include "base/result.hpp"
#include "imex/driver_root.hpp"

namespace nvdra::imex {

// True when the NVSwitch driver has devices, or an InfiniBand device of the node is a switch's
// management port. Missing files mean no; other read errors are errors.
Result<bool> single_node_nvlink(const DriverRoot& dev_root);

}  // namespace nvdra::imex
