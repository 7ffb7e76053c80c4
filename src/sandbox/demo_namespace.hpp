// What the sandbox needs of this machine before it starts anything.
#pragma once

#include "base/result.hpp"

namespace nvdra::sandbox {

// Mounts of its own, so that nothing is left on the machine; as an ordinary user inside a user
// namespace, in which this process is root. Call it before the first thread. Errors say what to
// allow.
Result<void> isolate();

// True when this process can make device nodes (real root).
bool makes_device_nodes();

}  // namespace nvdra::sandbox
