// May a pod run on a node? Pure: node selector, required node affinity, taints, cordons.
#pragma once

#include "base/json.hpp"

#include <string_view>

namespace nvdra::sandbox {

enum class Fit { fits, wrong_node, tainted, unschedulable };

// `pod_spec` is a pod's spec, or that of a template.
Fit fit(const Json& pod_spec, const Json& node);
// "node(s) didn't match Pod's node affinity/selector": the words of the scheduler.
std::string_view fit_text(Fit fit);

// A v1.NodeSelector: terms are alternatives, the expressions of a term belong together.
bool node_selector_matches(const Json& node_selector, const Json& node);

// The only node that the pod's required affinity allows by name, as for daemon pods; "" if there
// is no such bond.
std::string_view pinned_node(const Json& pod_spec);

// The tolerations that every daemon pod has.
JsonArray daemon_tolerations();

}  // namespace nvdra::sandbox
