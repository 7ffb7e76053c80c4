// The resource claims of a node's pods: prepared before a pod starts, released after its end.
#pragma once

#include "sandbox/kubelet_plugins.hpp"
#include "sandbox/store_registry.hpp"

#include <set>

namespace nvdra::sandbox {

class NodeClaims {
public:
  // `limit` of one call to a plugin: 45 s, as a kubelet has it.
  NodeClaims(Registry& registry, Plugins& plugins, Duration limit)
      : registry_(registry), plugins_(plugins), limit_(limit) {}

  // Prepares all claims of the pod. A claim that another pod of the node uses already is not
  // prepared again. The error is what a kubelet's event says after "Failed to prepare dynamic
  // resources: ".
  Async<Result<void>> prepare(ItemPtr pod);
  // Releases the claims that no other pod of this node uses. Nothing to do is a success.
  Async<Result<void>> unprepare(ItemPtr pod);

  // The CDI devices that container `name` of a prepared pod asks for.
  std::vector<std::string> cdi_devices(const Json& pod, const Json& container) const;

private:
  struct Claim {
    dra::ClaimRef ref;
    std::set<std::string> drivers;
    std::set<std::string> pods;  // UIDs
    dra::Prepared devices;
    bool prepared = false;
  };
  using Batches = std::map<std::string, std::vector<dra::ClaimRef>>;  // by driver

  Result<Claim> look_up(const Item& pod, const std::string& name) const;
  Async<Result<void>> prepare_with(std::string driver, std::vector<dra::ClaimRef> claims);
  Async<Result<void>> unprepare_with(std::string driver, std::vector<dra::ClaimRef> claims);
  Result<const Driver*> driver(const std::string& name) const;

  Registry& registry_;
  Plugins& plugins_;
  Duration limit_;
  std::map<std::string, Claim> claims_;  // by UID
};

}  // namespace nvdra::sandbox
