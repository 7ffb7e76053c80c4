#include "roles/common/imex_mode.hpp"

#include <fmt/format.h>

namespace nvdra::roles {

Result<ImexMode> imex_mode(std::string_view mode, std::string_view isolation,
                           const FeatureGates& gates) {
  bool host = mode == "hostManaged";
  if (!host && mode != "driverManaged")
    return refuse(fmt::format(
        "unknown IMEX mode \"{}\" (--imex-mode, IMEX_MODE): use driverManaged or hostManaged",
        mode));
  if (host && !gates.enabled("HostManagedIMEXDaemon"))
    return refuse(
        "IMEX mode hostManaged (--imex-mode, IMEX_MODE) requires the feature gate "
        "HostManagedIMEXDaemon: set HostManagedIMEXDaemon=true in --feature-gates");
  if (isolation == "channel")
    return refuse(
        "IMEX isolation \"channel\" (--imex-isolation, IMEX_ISOLATION) is not supported yet: use "
        "domain");
  if (!isolation.empty() && isolation != "domain")
    return refuse(fmt::format(
        "unknown IMEX isolation \"{}\" (--imex-isolation, IMEX_ISOLATION): use domain or channel",
        isolation));
  return host ? ImexMode::host_managed : ImexMode::driver_managed;
}

void force_gates(std::string_view mode, FeatureGates& gates) {
  if (mode != "hostManaged") return;
  gates.force("IMEXDaemonsWithDNSNames", false);
  gates.force("ComputeDomainCliques", false);
}

}  // namespace nvdra::roles
