#include "roles/daemon/run.hpp"

#include "roles/common/command_line.hpp"

namespace nvdra::roles::daemon {

int run(std::span<const std::string>, const Environment&) {
  return report_error(
      "the role daemon is not built yet: this release serves IMEX mode hostManaged only, in which "
      "nvidia-imex is the administrator's; install the chart with "
      "resources.computeDomains.imex.mode=hostManaged",
      exit_failed);
}

}  // namespace nvdra::roles::daemon
