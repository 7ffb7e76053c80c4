// IMEX mode and isolation: the same check in controller and plugin (node-side.md 3.2).
#pragma once

#include "base/feature_gates.hpp"

#include <string_view>

namespace nvdra::roles {

enum class ImexMode { driver_managed, host_managed };

// Mode before isolation; "" is a legal isolation (= domain) and an illegal mode. The error quotes
// the value and lists the legal ones, or names the gate HostManagedIMEXDaemon.
Result<ImexMode> imex_mode(std::string_view mode, std::string_view isolation,
                           const FeatureGates& gates);

// hostManaged governs two gates itself: forces IMEXDaemonsWithDNSNames and ComputeDomainCliques
// off, before the dependency check (W-F1).
void force_gates(std::string_view mode, FeatureGates& gates);

}  // namespace nvdra::roles
