// The daemon's flags and environment, read once (node-side.md 11.1, newer.md A15).
#pragma once

#include "base/args.hpp"
#include "base/feature_gates.hpp"
#include "base/ids.hpp"
#include "roles/common/imex_overrides.hpp"

#include <span>
#include <string>

namespace nvdra::roles::daemon {

struct Config {
  DomainUid domain;  // COMPUTE_DOMAIN_UUID, from the claim's CDI edits; so are the next three
  std::string domain_name;   // COMPUTE_DOMAIN_NAME
  std::string domain_space;  // COMPUTE_DOMAIN_NAMESPACE
  CliqueId clique;           // CLIQUE_ID; empty = this node has no fabric
  NodeName node;
  std::string pod_ip;
  std::string pod_uid;
  std::string pod_name;
  std::string pod_space;
  std::int64_t slots = 18;  // MAX_NODES_PER_IMEX_DOMAIN
  ImexOverrides overrides;
  FeatureGates gates;
  std::string kubeconfig;
  std::string http_endpoint;  // "" = none
  std::string imexd = "/imexd";
  std::string hosts_file = "/etc/hosts";
  std::string status_socket;  // name of an abstract Unix socket
  std::string library_path;   // of nvidia-imex and its tool; "" = as inherited
  std::string path;           // PATH

  bool names() const { return gates.enabled("IMEXDaemonsWithDNSNames"); }
  bool cliques() const { return gates.enabled("ComputeDomainCliques"); }
  std::string config_file() const { return imexd + "/imexd.cfg"; }
  std::string template_file() const { return imexd + "/imexd.cfg.tmpl"; }
  std::string nodes_file() const { return imexd + "/nodes.cfg"; }
  // "domain d in namespace default"
  std::string domain_text() const;
};

std::span<const Flag> flags();

// What both sub-commands need; nothing is checked yet.
Result<Config> read_config(const Args& args, const Environment& environment);

// What `run` needs beyond it: the gates' dependencies, and every value that a domain's member must
// have. The error names flag and variable, and where the value comes from.
Result<void> check_for_run(const Config& config);

}  // namespace nvdra::roles::daemon
