// The root file system of a container, made in a mount namespace of its own.
#pragma once

#include "sandbox/pod_inside.hpp"

#include <sys/types.h>

namespace nvdra::sandbox {

// This process enters new namespaces (mounts, host name) and the root that `spec` describes. As an
// ordinary user it enters a user namespace first.
Result<void> enter_own_root(const ContainerSpec& spec);

// This process enters the namespaces and the root of another one.
Result<void> enter_root_of(pid_t process);

// A user namespace in which this process is root, with mounts of its own. It must have one thread
// only. Errors say what to allow.
Result<void> become_root_of_namespace();

}  // namespace nvdra::sandbox
