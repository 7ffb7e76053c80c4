// Asking the driver about its GPUs: nvidia-smi, run inside the driver root.
#pragma once

#include "base/time.hpp"
#include "imex/driver_root.hpp"
#include "imex/gpu.hpp"

namespace nvdra::imex {

// Every GPU of the node. A driver that does not know the fabric's query fields is asked once more
// with `nvidia-smi -q`. Each run ends within `limit`. Errors are sentences: the tool is missing,
// gave no answer in time, failed (with what it printed), or printed a line that is not understood.
Async<Result<std::vector<Gpu>>> query_gpus(DriverRoot root, Time& time, Duration limit = 10s);

}  // namespace nvdra::imex
