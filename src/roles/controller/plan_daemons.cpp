#include "roles/common/names.hpp"
#include "roles/controller/plan_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::controller {
namespace {

Finding daemons(bool holds, std::string reason, std::string message, bool warning = false) {
  return {"DaemonsReady", holds, std::move(reason), std::move(message), warning};
}

k8s::ObjectPtr in_space(const std::vector<k8s::ObjectPtr>& objects, const std::string& space) {
  auto found =
      std::ranges::find(objects, space, [](const auto& object) { return object->space(); });
  return found == objects.end() ? nullptr : *found;
}

// Whether changing the DaemonSet disturbs nobody: it has no pods and wants none.
bool unused(const k8s::Object& daemon_set, const Observed& observed) {
  return observed.pods.empty() && observed.nodes.empty() &&
         int_or(daemon_set.json(), "status/desiredNumberScheduled", 0) == 0 &&
         int_or(daemon_set.json(), "status/currentNumberScheduled", 0) == 0;
}

Finding not_current(const k8s::Object& found, const Json& wanted, Fit how) {
  std::string place = found.key().text();
  if (how == Fit::edited)
    return {"DaemonsCurrent", false, "DaemonSetEdited",
            fmt::format("somebody changed DaemonSet {} ({}): delete it, and it is created again "
                        "as it should be",
                        place, differences(found, wanted)),
            true};
  return {
      "DaemonsCurrent", false, "DaemonSetOutdated",
      fmt::format("DaemonSet {} was made for other settings ({}) and keeps them while it is in "
                  "use; to change it now, delete it, or set the chart's value "
                  "resources.computeDomains.imex.rollOutDaemons=true (flag "
                  "--cd-daemon-roll-out): its daemons are then replaced under running workloads",
                  place, differences(found, wanted))};
}

// An existing DaemonSet of ours that stays.
void keep_current(const k8s::ObjectPtr& found, const Observed& observed, const Settings& settings,
                  Plan& plan) {
  DomainUid uid(std::string(observed.domain->uid()));
  Json wanted = daemon_set(uid, std::string(found->space()), settings.daemons);
  const JsonObject& labels = object_or_empty(wanted, "metadata/labels");
  if (!contains(found->json().at("metadata"), Json{{"labels", labels}}) ||
      !found->has_finalizer(finalizer)) {
    plan.actions.push_back(Mark{Kind::daemon_set, found, labels});
    return;
  }
  Fit how = fit(*found, wanted);
  if (how == Fit::same) return;
  bool may = settings.roll_out || unused(*found, observed);
  if (how == Fit::outdated && may)
    plan.actions.push_back(Amend{Kind::daemon_set, found, roll_out_patch(*found, wanted)});
  else
    plan.findings.push_back(not_current(*found, wanted, how));
}

}  // namespace

std::vector<k8s::ObjectPtr> own_daemon_sets(const Observed& observed, const DomainUid& uid) {
  std::vector<k8s::ObjectPtr> ours = observed.daemon_sets;
  std::erase_if(ours, [&](const auto& object) { return !daemon_set_made_for(*object, uid); });
  return ours;
}

std::vector<k8s::ObjectPtr> own_daemon_templates(const Observed& observed, const DomainUid& uid,
                                                 const Settings& settings) {
  std::vector<k8s::ObjectPtr> ours = observed.templates;
  std::erase_if(ours, [&](const k8s::ObjectPtr& object) {
    return !is_daemon_template(*object, uid, settings.spaces);
  });
  return ours;
}

Finding plan_daemons(const Domain& domain, const Observed& observed, const Settings& settings,
                     Plan& plan) {
  std::vector<k8s::ObjectPtr> sets = own_daemon_sets(observed, domain.uid);
  // A DaemonSet of an earlier installation in an additional namespace goes on serving its domain.
  std::string space = sets.empty() ? settings.daemons.space : std::string(sets.front()->space());
  std::string place = space + "/" + daemon_object_name(domain.uid);
  if (sets.empty() && in_space(observed.daemon_sets, space))
    return daemons(false, "DaemonSetNameTaken",
                   fmt::format("DaemonSet {} exists and was not created for this ComputeDomain: "
                               "delete it",
                               place),
                   true);

  if (sets.size() > 1)
    plan.findings.push_back(
        {"DaemonsCurrent", false, "SeveralDaemonSets",
         fmt::format("the domain has {} DaemonSets, in the namespaces {} and {}: delete the one of "
                     "the earlier installation",
                     sets.size(), sets[0]->space(), sets[1]->space()),
         true});
  Json wanted = daemon_template(domain.uid, space, settings.resource_version);
  std::vector<k8s::ObjectPtr> own = own_daemon_templates(observed, domain.uid, settings);
  std::size_t before = plan.actions.size();
  if (k8s::ObjectPtr found = in_space(own, space)) {
    std::optional<Finding> trouble = plan_own_template(found, wanted, plan.actions);
    if (trouble) return daemons(false, trouble->reason, trouble->message);
  } else {
    plan.actions.push_back(Create{Kind::claim_template, wanted});
  }
  if (sets.empty()) {
    plan.actions.push_back(
        Create{Kind::daemon_set, daemon_set(domain.uid, space, settings.daemons)});
  } else if (sets.front()->deleting()) {
    plan_removal(Kind::daemon_set, sets.front(), plan.actions);
    return daemons(
        false, "DaemonSetTerminating",
        fmt::format("DaemonSet {} is being deleted; it is created again when it is gone", place));
  } else {
    keep_current(sets.front(), observed, settings, plan);
  }
  if (plan.actions.size() != before)
    return daemons(false, "Creating", "creating DaemonSet " + place + " and its claim template");
  return daemons(true, "DaemonSetCreated", "DaemonSet " + place + " exists");
}

void plan_daemons_removal(const Observed& observed, const Settings& settings,
                          std::vector<Action>& actions) {
  DomainUid uid(std::string(observed.domain->uid()));
  for (const k8s::ObjectPtr& object : own_daemon_sets(observed, uid))
    plan_removal(Kind::daemon_set, object, actions);
  for (const k8s::ObjectPtr& object : own_daemon_templates(observed, uid, settings))
    plan_removal(Kind::claim_template, object, actions);
  if (!observed.nodes.empty()) actions.push_back(Unlabel{uid, observed.nodes});
}

}  // namespace nvdra::roles::controller
