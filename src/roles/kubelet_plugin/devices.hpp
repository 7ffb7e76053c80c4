// What this node can give: channels and daemons → CDI files.
#pragma once

#include "cdi/shared_nodes.hpp"
#include "dra/checkpoint.hpp"
#include "dra/slices.hpp"
#include "imex/capability.hpp"
#include "roles/common/imex_mode.hpp"
#include "roles/kubelet_plugin/allocation.hpp"

#include <map>

namespace nvdra::roles::kubelet_plugin {

struct Roots {
  std::string container;     // the driver root as this process sees it
  std::string host;          // and as the host has it
  std::string proc_devices;  // /proc/devices, or ALT_PROC_DEVICES_PATH
  // The capability file of the fabric's management; in a simulation below the driver root.
  std::string capability = std::string(imex::fabric_management_path);
};

// Namespace and name of a ComputeDomain.
struct DomainName {
  std::string space;
  std::string name;
};

// What the CDI file of a claim depends on besides the claim; all by value, so that it can be kept.
struct ClaimSetting {
  CliqueId clique;                          // of the node; empty = no fabric
  bool all_allowed = false;                 // allocationMode All has an effect
  std::map<DomainUid, DomainName> domains;  // of the daemon groups
  std::string domains_directory;            // on the host: <it>/<uid> becomes /imexd
};

// The nodes of all 2048 channels, as every CDI file of allocationMode All has them on this host:
// made when they are first wanted, and again only for another major number (18.3 no. 46).
class AllChannels {
public:
  explicit AllChannels(const Roots& roots) : container_(roots.container), host_(roots.host) {}

  std::shared_ptr<const cdi::SharedNodes> nodes(std::uint32_t major);
  // How often the list has been made.
  int made() const { return made_; }

private:
  std::string container_;
  std::string host_;
  std::uint32_t major_ = 0;
  std::shared_ptr<const cdi::SharedNodes> nodes_;
  int made_ = 0;
};

// The CDI file of a claim (node-side.md 8.3). On a fabric node: the channels, all 2048 for
// allocationMode All where that is allowed, and the management capability of daemons. On any node:
// a daemon's environment and directory. No devices: no file is needed. An error when /proc/devices
// lacks a class or the capability file is missing (reports 14): nothing is to be written then.
Result<cdi::Spec> claim_spec(const ClaimUid& claim, const std::vector<ConfigGroup>& groups,
                             const Roots& roots, const ClaimSetting& setting,
                             AllChannels& all_channels);

// What the node's ResourceSlice offers.
std::vector<dra::SliceDevice> published_devices(ImexMode mode);

// The checkpoint's record of the same groups. Without fabric the channels have no CDI ids.
std::vector<dra::DeviceGroup> prepared_groups(const ClaimUid& claim,
                                              const std::vector<ConfigGroup>& groups, bool fabric);

}  // namespace nvdra::roles::kubelet_plugin
