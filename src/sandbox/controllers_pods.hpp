// Pods that controllers make from templates.
#pragma once

#include "sandbox/controllers_base.hpp"

namespace nvdra::sandbox {

// Ten characters that change with spec.template.
std::string template_hash(const Json& workload);
bool has_hash(const Json& pod, std::string_view hash);

// The pods whose controller this object is.
std::vector<ItemPtr> pods_of_controller(Registry& registry, const Item& owner);

// A pod from the owner's spec.template, with this spec and the hash as a label; tells it in an
// Event of `component`. False when the server refuses (told in an Event, too). `more` is merged
// into the pod (labels, annotations).
bool make_pod(Registry& registry, const Item& owner, Json spec, const std::string& hash,
              std::string_view component, const Json& more = JsonObject{});
void remove_pod(Registry& registry, const Item& pod);

}  // namespace nvdra::sandbox
