// What `kubectl get` prints: meta.k8s.io/v1 Table.
#pragma once

#include "base/time.hpp"
#include "sandbox/store_item.hpp"
#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

// [{name, type, format, description, priority}]
JsonArray table_columns(const Resource& resource);
// One cell for each column.
JsonArray table_cells(const Resource& resource, const Json& object, WallClock::time_point now);

// "3m20s": how long ago an RFC 3339 time was; "<unknown>" if it is none.
std::string age_text(std::string_view timestamp, WallClock::time_point now);

}  // namespace nvdra::sandbox
