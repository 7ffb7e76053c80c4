// What the API server adds to objects of the built-in kinds.
#pragma once

#include "sandbox/store_resource.hpp"

#include <string_view>

namespace nvdra::sandbox {

// Fills in the defaults of the desired state (containers' policies, update strategies, counts …).
void fill_built_in_defaults(const Resource& resource, Json& object);

// The status that a new object begins with (pods: Pending, namespaces: Active).
void begin_status(const Resource& resource, Json& object);

}  // namespace nvdra::sandbox
