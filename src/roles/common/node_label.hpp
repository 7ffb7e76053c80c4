// The label that gives a node to a domain, as controller and kubelet plugin take it away.
#pragma once

#include "base/ids.hpp"
#include "base/json.hpp"

namespace nvdra::roles {

// JSON patch that takes the domain's label from a node, guarded by its value (reports 58).
Json remove_label_patch(const DomainUid& domain);

}  // namespace nvdra::roles
