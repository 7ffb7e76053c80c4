// What a change of mode has left behind, and what belongs to ComputeDomains that no longer exist:
// looked at once, when the controller begins its work (W-C19; cluster-side.md 4.10). Pure. What is
// done about it, domain by domain, plan.hpp decides.
#pragma once

#include "roles/controller/plan.hpp"

#include <string>
#include <vector>

namespace nvdra::roles::controller {

// Everything with our label that the controller may see in its mode.
struct Inventory {
  std::vector<k8s::ObjectPtr> domains;
  std::vector<k8s::ObjectPtr> templates;
  std::vector<k8s::ObjectPtr> daemon_sets = {};
  std::vector<k8s::ObjectPtr> nodes = {};
};

struct Leftovers {
  // hostManaged: what driverManaged left, one text for each domain, those that exist first:
  // "default/a (ResourceClaimTemplate driver/computedomain-daemon-…, DaemonSet …, 2 nodes: n1, n2)"
  std::vector<std::string> of_daemons;
  // ComputeDomains whose workload template the other mode made, and which gets made again.
  std::vector<k8s::ObjectPtr> with_other_template;
  std::size_t vanished = 0;  // UIDs on objects of ours that no ComputeDomain has
};

Leftovers find_leftovers(const Inventory& seen, const Settings& settings);

// Lines for the log, none when there is nothing to tell. Each names at most ten domains.
std::vector<std::string> describe(const Leftovers& found, const Settings& settings);

}  // namespace nvdra::roles::controller
