// Objects in another version of their API than the stored one. Only resource.k8s.io differs:
// v1beta2 has the shape of v1; v1beta1 has flat requests and `basic` devices.
#pragma once

#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

Json to_served(const Resource& resource, std::string_view version, Json stored);
Json to_stored(const Resource& resource, std::string_view version, Json served);

}  // namespace nvdra::sandbox
