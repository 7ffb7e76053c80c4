// A ResourceClaim's status in the one spelling that the checkpoint stores (node-side.md 7.2): keys
// in the order of the API type, empty optional fields left out, fields that the type does not have
// dropped. Two statuses that mean the same have the same text.
#pragma once

#include "base/json.hpp"

#include <string>

namespace nvdra::dra {

// `status` is the object as the API server gives it, in any version of resource.k8s.io; anything
// that is not an object gives "{}". Opaque parameters keep their own key order.
std::string render_status(const Json& status);

// "Has the claim changed since?": absent and empty lists are equal (node-side.md 6.6, step 3).
bool same_status(const Json& a, const Json& b);

// One device of status.allocation.devices.results.
struct AllocatedDevice {
  std::string request;
  std::string driver;
  std::string pool;
  std::string device;
  bool admin_access = false;
  bool operator==(const AllocatedDevice&) const = default;
};
// Empty when there is no allocation.
std::vector<AllocatedDevice> allocated_devices(const Json& status);

}  // namespace nvdra::dra
