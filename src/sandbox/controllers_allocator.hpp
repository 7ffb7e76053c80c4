// Devices for claims: which of a node's devices satisfy a ResourceClaim (resource.k8s.io/v1).
#pragma once

#include "sandbox/store_registry.hpp"

#include <set>

namespace nvdra::sandbox {

struct DeviceId {
  std::string driver;
  std::string pool;
  std::string device;
  auto operator<=>(const DeviceId&) const = default;
};

using DevicesInUse = std::set<DeviceId>;

// The devices of an allocation.
std::vector<DeviceId> devices_of(const Json& claim);

// The ResourceSlices by node, kept up to date by changes.
class SliceIndex {
public:
  void changed(const Change& change);
  // The slices whose devices the node can reach.
  std::vector<ItemPtr> of_node(const Json& node) const;

private:
  std::map<std::string, std::map<std::string, ItemPtr>> by_node_;  // node → slice name → slice
  std::map<std::string, ItemPtr> others_;                          // all nodes, or selected ones
};

// status.allocation for the claim on this node. The error says why there is none: an unknown
// device class, a selector that cannot be evaluated, or "cannot allocate all claims".
// Understood: exactly and firstAvailable requests, ExactCount and All, selectors of class and
// request, configs of class and claim, adminAccess. Not: constraints, capacity, partitions.
Result<Json> allocate(Registry& registry, const SliceIndex& slices, const Json& claim,
                      const Json& node, const DevicesInUse& in_use);

}  // namespace nvdra::sandbox
