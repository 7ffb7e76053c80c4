// The parts of a plan; see plan.hpp. Pure.
#pragma once

#include "roles/controller/plan.hpp"

namespace nvdra::roles::controller {

// How a human has the leftovers of driverManaged removed (W-C19). The value, not the flag alone:
// only the value brings the rights.
inline constexpr std::string_view how_to_clean_up =
    "the chart's value resources.computeDomains.imex.cleanUpOtherMode=true (flag "
    "--clean-up-other-mode, and the rights for it)";

// Delete, then let go: the order in which an object of ours leaves.
void plan_removal(Kind kind, const k8s::ObjectPtr& object, std::vector<Action>& actions);

// The workload template: the actions that bring it about, and what to say about it
// ("TemplateReady").
Finding plan_template(const Domain& domain, const Observed& observed, const Settings& settings,
                      std::vector<Action>& actions);

// A template of one's own that is there: replaced when its spec is another, marked when it has lost
// label or finalizer. nullopt when it is as it should be and stays.
std::optional<Finding> plan_own_template(const k8s::ObjectPtr& found, const Json& wanted,
                                         std::vector<Action>& actions);

// The objects of the daemons that are ours, in all managed namespaces.
std::vector<k8s::ObjectPtr> own_daemon_sets(const Observed& observed, const DomainUid& uid);
std::vector<k8s::ObjectPtr> own_daemon_templates(const Observed& observed, const DomainUid& uid,
                                                 const Settings& settings);

// Daemon template and DaemonSet: actions, and "DaemonsReady" with holds = they are there. What is
// worth a condition besides goes to `findings`.
Finding plan_daemons(const Domain& domain, const Observed& observed, const Settings& settings,
                     Plan& plan);

// Takes the daemons' objects and the nodes' labels away. Nothing planned = nothing is left, or what
// is left waits for others.
void plan_daemons_removal(const Observed& observed, const Settings& settings,
                          std::vector<Action>& actions);

// What the members say: status.nodes, summary, and the "DaemonsReady" of a domain whose objects
// exist. `holds` = the rule of cluster-side.md 4.8.1 with every known daemon counted.
Finding judge_members(const Domain& domain, const Membership& members, const Settings& settings);
// Conditions that exist only while something is odd.
void add_oddities(const Membership& members, Plan& plan);

}  // namespace nvdra::roles::controller
