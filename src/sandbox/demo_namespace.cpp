#include "sandbox/demo_namespace.hpp"

#include "base/try.hpp"
#include "sandbox/pod_root.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace nvdra::sandbox {

Result<void> isolate() {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0) return become_root_of_namespace();
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return errno_failure("make the mounts of the sandbox private");
  return ok();
}

bool makes_device_nodes() {
  // The first user namespace maps everything.
  std::ifstream map("/proc/self/uid_map");
  unsigned long inside = 1;
  unsigned long outside = 1;
  unsigned long count = 0;
  map >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count > 1;
}

}  // namespace nvdra::sandbox
