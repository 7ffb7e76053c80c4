#include "roles/controller/plan.hpp"

#include "roles/common/names.hpp"
#include "roles/controller/patches.hpp"
#include "roles/controller/plan_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::controller {
namespace {

Finding as_ready(Finding finding) {
  finding.type = "Ready";
  return finding;
}

Plan plan_host_managed(const Domain& domain, const Observed& observed, const Settings& settings,
                       Plan plan) {
  std::size_t before = plan.actions.size();
  std::vector<k8s::ObjectPtr> left = own_daemon_templates(observed, domain.uid, settings);
  if (settings.clean_up_other_mode) {
    plan_daemons_removal(observed, settings, plan.actions);
  } else if (!left.empty()) {
    plan.findings.push_back(
        {"ModeConflict", true, "LeftoversOfDriverManaged",
         fmt::format("ResourceClaimTemplate {} and its DaemonSet are left over from mode "
                     "driverManaged: set resources.computeDomains.imex.mode back to driverManaged "
                     "and delete this ComputeDomain before you change the mode, or have them "
                     "removed with {}",
                     left.front()->key().text(), how_to_clean_up),
         true});
    plan.findings.push_back(as_ready(plan.findings.back()));
    plan.findings.back().holds = false;
    return plan;
  }
  // Members of an earlier life: hostManaged has none.
  if (!array_or_empty(observed.domain->json(), "status/nodes").empty()) plan.nodes.emplace();
  Finding workload = plan_template(domain, observed, settings, plan.actions);
  Finding ready = as_ready(workload);
  if (workload.holds) {
    ready.reason = "Admitted";
    ready.message =
        "host-managed: the workload template exists; each node's nvidia-imex service is checked "
        "when a claim is prepared there";
  }
  plan.ready = workload.holds && (!settings.clean_up_other_mode || plan.actions.size() == before);
  plan.findings.push_back(std::move(ready));
  plan.findings.push_back(std::move(workload));
  return plan;
}

Membership members_of(const Observed& observed, const Settings& settings) {
  Seen seen{observed.domain, observed.cliques, observed.pods, observed.nodes, observed.live_pods};
  return assess(seen, settings.daemons.max_nodes);
}

// The first one that does not hold is what the domain waits for.
Finding verdict(const Finding& workload, const Finding& daemons) {
  return as_ready(workload.holds ? daemons : workload);
}

Plan plan_driver_managed(const Domain& domain, const Observed& observed, const Settings& settings,
                         Plan plan) {
  Finding workload = plan_template(domain, observed, settings, plan.actions);
  // Daemons' objects are made once the template's name is proven to be ours; those that exist
  // already are not disturbed by its loss.
  bool named = observed.occupant && made_for(*observed.occupant, domain.uid);
  Finding daemons{"DaemonsReady", false, workload.reason, workload.message, workload.warning};
  if (named) daemons = plan_daemons(domain, observed, settings, plan);

  Membership members = members_of(observed, settings);
  for (const Stale& stale : members.stale)
    plan.actions.push_back(Amend{Kind::clique, stale.clique, prune_patch(stale)});
  if (daemons.holds) daemons = judge_members(domain, members, settings);
  plan.ready = workload.holds && daemons.holds;
  plan.findings.push_back(verdict(workload, daemons));
  plan.findings.push_back(std::move(workload));
  plan.findings.push_back(std::move(daemons));
  add_oddities(members, plan);
  plan.node_summary = fmt::format("{}/{}", members.ready, members.known);
  plan.nodes = std::move(members.nodes);
  plan.doubtful = members.doubtful;
  return plan;
}

std::string held_by_others(const Observed& observed, const Settings& settings,
                           const std::vector<k8s::ObjectPtr>& templates) {
  DomainUid uid(std::string(observed.domain->uid()));
  std::vector<std::string> names;
  names.reserve(templates.size());
  for (const k8s::ObjectPtr& object : templates)
    names.push_back("ResourceClaimTemplate " + object->key().text());
  if (settings.manages_daemons()) {
    for (const k8s::ObjectPtr& object : own_daemon_sets(observed, uid))
      names.push_back("DaemonSet " + object->key().text());
    for (const k8s::ObjectPtr& object : own_daemon_templates(observed, uid, settings))
      names.push_back("ResourceClaimTemplate " + object->key().text());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Every object goes for itself; the ComputeDomain goes when nothing of it is left.
Plan plan_deletion(const Domain& domain, const Observed& observed, const Settings& settings) {
  Plan plan;
  std::vector<k8s::ObjectPtr> own = observed.templates;
  std::erase_if(
      own, [&](const k8s::ObjectPtr& object) { return !is_workload_template(*object, domain); });
  for (const k8s::ObjectPtr& object : own) plan_removal(Kind::claim_template, object, plan.actions);
  if (settings.manages_daemons()) plan_daemons_removal(observed, settings, plan.actions);
  if (!plan.actions.empty()) return plan;

  std::string waiting = held_by_others(observed, settings, own);
  std::vector<k8s::ObjectPtr> left = own_daemon_templates(observed, domain.uid, settings);
  if (!waiting.empty()) {
    plan.findings.push_back({"Ready", false, "Terminating",
                             "waiting for " + waiting + ", which has finalizers of others"});
  } else if (!settings.manages_daemons() && !left.empty()) {
    plan.findings.push_back(
        {"Ready", false, "Terminating",
         fmt::format("waiting for ResourceClaimTemplate {} and its DaemonSet, left over from mode "
                     "driverManaged: set resources.computeDomains.imex.mode back to driverManaged, "
                     "or have them removed with {}",
                     left.front()->key().text(), how_to_clean_up),
         true});
  } else if (observed.domain->has_finalizer(finalizer)) {
    plan.actions.push_back(Release{Kind::domain, observed.domain});
  }
  return plan;
}

}  // namespace

Plan plan_domain(const Observed& observed, const Settings& settings) {
  Domain domain = read_domain(*observed.domain);
  if (domain.deleting) return plan_deletion(domain, observed, settings);

  Plan plan;
  if (!observed.domain->has_finalizer(finalizer))
    plan.actions.push_back(Mark{Kind::domain, observed.domain, {}});
  return settings.mode == ImexMode::host_managed
             ? plan_host_managed(domain, observed, settings, std::move(plan))
             : plan_driver_managed(domain, observed, settings, std::move(plan));
}

Plan plan_orphans(const Remains& remains, const Settings& settings) {
  Plan plan;
  if (settings.manages_daemons())
    for (const k8s::ObjectPtr& object : remains.daemon_sets)
      if (daemon_set_made_for(*object, remains.uid))
        plan_removal(Kind::daemon_set, object, plan.actions);
  for (const k8s::ObjectPtr& object : remains.templates) {
    bool of_daemons = !is_target(*object, target_workload);
    // Without its DaemonSet in view a daemon template is not ours to judge.
    if (of_daemons &&
        (!settings.manages_daemons() || !is_daemon_template(*object, remains.uid, settings.spaces)))
      continue;
    plan_removal(Kind::claim_template, object, plan.actions);
  }
  if (!remains.nodes.empty()) plan.actions.push_back(Unlabel{remains.uid, remains.nodes});
  return plan;
}

}  // namespace nvdra::roles::controller
