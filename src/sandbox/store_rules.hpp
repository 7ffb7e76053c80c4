// What the API server refuses: names, labels, immutable fields, and the parts of an object that a
// request may not touch.
#pragma once

#include "sandbox/store_item.hpp"
#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

// Takes from `before` what an update through `subresource` ("" or "status") may not change: system
// metadata, and the status or everything but the status.
void keep_foreign_parts(const Resource& resource, std::string_view subresource, const Json& before,
                        Json& object);

// True when anything but metadata and status differs: metadata.generation counts these changes.
bool desired_state_differs(const Resource& resource, const Json& before, const Json& after);

// What is wrong with an object, as "path: message"; `before` is nullptr at creation.
std::vector<std::string> rule_errors(const Resource& resource, const Json& object,
                                     const Json* before);

// Kubernetes' suffix of generated names: five characters that spell no words.
std::string name_suffix(std::uint64_t random);

}  // namespace nvdra::sandbox
