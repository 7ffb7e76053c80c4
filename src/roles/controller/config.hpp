// The controller's flags and environment (cluster-side.md 4.1, newer.md A15, A16) → one struct.
#pragma once

#include "base/args.hpp"
#include "base/feature_gates.hpp"
#include "roles/common/imex_mode.hpp"
#include "roles/controller/plan.hpp"

#include <span>
#include <string>
#include <vector>

namespace nvdra::roles::controller {

struct Config {
  std::string pod_name;
  std::string driver_namespace;
  std::vector<std::string> namespaces;  // the driver's first, then the additional ones, no doubles
  std::string image;
  std::vector<std::string> pull_secrets;
  std::int64_t daemon_verbosity = 0;
  std::int64_t max_nodes = 18;
  std::vector<std::pair<std::string, std::string>> imex_overrides;
  std::string daemon_priority_class;
  JsonObject daemon_resources;
  bool roll_out_daemons = false;     // change outdated DaemonSets although their daemons run
  bool clean_up_other_mode = false;  // hostManaged: remove what driverManaged left behind (W-C19)
  ImexMode mode = ImexMode::driver_managed;
  FeatureGates gates;
  std::string http_endpoint;  // "" = off
  std::string metrics_path;   // "" = not served
  std::string kubeconfig;
  int requests_in_flight = 64;
  bool election = false;
  std::string lease_namespace;
  std::string lease_name;
  std::chrono::nanoseconds lease_duration{};
  std::chrono::nanoseconds renew_deadline{};
  std::chrono::nanoseconds retry_period{};
};

std::span<const Flag> flags();

// Order of checks: flags, then gates are forced by the mode, then their dependencies, then mode and
// isolation, then single values. Every error is one sentence.
Result<Config> read_config(const Args& args, const Environment& environment);

// What the controller's decisions need of it. `resource_version` is that of resource.k8s.io.
Settings settings_of(const Config& config, std::string resource_version);

// The start-up line at level 0 (cluster-side.md 4.13: tests grep "controller manager config",
// "maxNodesPerIMEXDomain", "additionalNamespaces:").
std::string describe(const Config& config);

}  // namespace nvdra::roles::controller
