// Claims of pods.
#pragma once

#include "base/json.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

// The finalizer that keeps an allocated claim from going.
inline constexpr std::string_view claim_protection = "resource.kubernetes.io/delete-protection";

// The name of the ResourceClaim of each entry of spec.resourceClaims; "" while it is not made yet.
std::vector<std::string> claims_of(const Json& pod);

}  // namespace nvdra::sandbox
