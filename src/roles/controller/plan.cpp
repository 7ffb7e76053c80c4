#include "roles/controller/plan.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::controller {
namespace {

bool is_target(const k8s::Object& object, std::string_view target) {
  const Json* label = object.label(target_label);
  return label && label->is_string() && label->get_string() == target;
}

// Delete, then let go: the order in which an object of ours leaves.
void plan_removal(Kind kind, const k8s::ObjectPtr& object, std::vector<Action>& actions) {
  if (!object->deleting()) actions.push_back(Delete{kind, object});
  if (object->has_finalizer(finalizer)) actions.push_back(Release{kind, object});
}

std::string conflict_message(const Domain& domain, const Observed& observed) {
  std::string place = domain.key.space + "/" + domain.template_name;
  if (!observed.occupant_owner.empty())
    return fmt::format(
        "ResourceClaimTemplate {} belongs to ComputeDomain {}: choose another "
        "spec.channel.resourceClaimTemplate.name, or delete that ComputeDomain",
        place, observed.occupant_owner);
  return fmt::format(
      "ResourceClaimTemplate {} exists and was not created for this ComputeDomain: delete or "
      "rename it, "
      "or choose another spec.channel.resourceClaimTemplate.name",
      place);
}

Finding invalid_name(const Domain& domain) {
  std::string message = domain.template_name.empty()
                            ? "spec.channel.resourceClaimTemplate.name is missing: create the "
                              "ComputeDomain again with a "
                              "template name"
                            : fmt::format(
                                  "spec.channel.resourceClaimTemplate.name \"{}\" is no legal "
                                  "object name (lower case "
                                  "letters, digits, '-', '.', at most 253): create the "
                                  "ComputeDomain again with another",
                                  domain.template_name.substr(0, 80));
  return {"TemplateReady", false, "InvalidTemplateName", message, true};
}

// The workload template: the actions that bring it about, and what to say about it.
Finding plan_template(const Domain& domain, const Observed& observed, const Settings& settings,
                      std::vector<Action>& actions) {
  if (!is_dns_subdomain(domain.template_name)) return invalid_name(domain);
  std::string place = domain.key.space + "/" + domain.template_name;
  Json wanted = workload_template(domain, settings.mode, settings.resource_version);
  const k8s::ObjectPtr& found = observed.occupant;
  if (!found) {
    actions.push_back(Create{Kind::claim_template, wanted});
    return {"TemplateReady", false, "Creating", "creating ResourceClaimTemplate " + place};
  }
  if (!made_for(*found, domain.uid))
    return {"TemplateReady", false, "TemplateNameTaken", conflict_message(domain, observed), true};

  bool same_spec = contains(find(found->json(), "spec") ? *find(found->json(), "spec") : Json{},
                            *find(wanted, "spec"));
  if (found->deleting() || !same_spec) {
    plan_removal(Kind::claim_template, found, actions);
    if (actions.empty())
      return {"TemplateReady", false, "TemplateTerminating",
              fmt::format(
                  "ResourceClaimTemplate {} is being deleted and waits for finalizers of others",
                  place)};
    return {"TemplateReady", false, "Recreating",
            "creating ResourceClaimTemplate " + place + " again"};
  }
  const JsonObject& labels = object_or_empty(wanted, "metadata/labels");
  if (!contains(found->json().at("metadata"), Json{{"labels", labels}}) ||
      !found->has_finalizer(finalizer))
    actions.push_back(Mark{Kind::claim_template, found, labels});
  return {"TemplateReady", true, "TemplateCreated", "ResourceClaimTemplate " + place + " exists"};
}

Finding ready_finding(const Finding& workload_template, const Settings& settings) {
  Finding ready = workload_template;
  ready.type = "Ready";
  if (workload_template.holds && settings.mode == ImexMode::host_managed) {
    ready.reason = "Admitted";
    ready.message =
        "host-managed: the workload template exists; each node's nvidia-imex service is checked "
        "when "
        "a claim is prepared there";
  }
  return ready;
}

// hostManaged makes no daemons: a daemon template can only come from an earlier driverManaged life.
void add_leftovers(const Observed& observed, const Settings& settings, Plan& plan) {
  if (settings.mode != ImexMode::host_managed) return;
  for (const k8s::ObjectPtr& object : observed.templates)
    if (is_target(*object, target_daemon))
      plan.findings.push_back(
          {"ModeConflict", true, "LeftoversOfDriverManaged",
           fmt::format(
               "ResourceClaimTemplate {} and its DaemonSet are left over from mode "
               "driverManaged: set imex.mode back to driverManaged, delete the ComputeDomains, "
               "then change the mode",
               object->key().text()),
           true});
}

Plan plan_deletion(const Domain& domain, const Observed& observed) {
  Plan plan;
  std::string waiting;
  for (const k8s::ObjectPtr& object : observed.templates) {
    if (!is_target(*object, target_workload) || object->key().space != domain.key.space) continue;
    plan_removal(Kind::claim_template, object, plan.actions);
    waiting = "ResourceClaimTemplate " + object->key().text();
  }
  if (waiting.empty() && observed.domain->has_finalizer(finalizer)) {
    plan.actions.push_back(Release{Kind::domain, observed.domain});
  } else if (plan.actions.empty() && !waiting.empty()) {
    plan.findings.push_back({"Ready", false, "Terminating",
                             "waiting for " + waiting + ", which has finalizers of others"});
  }
  return plan;
}

}  // namespace

Plan plan_domain(const Observed& observed, const Settings& settings) {
  Domain domain = read_domain(*observed.domain);
  if (domain.deleting) return plan_deletion(domain, observed);

  Plan plan;
  if (!observed.domain->has_finalizer(finalizer))
    plan.actions.push_back(Mark{Kind::domain, observed.domain, {}});
  Finding workload = plan_template(domain, observed, settings, plan.actions);
  plan.findings.push_back(ready_finding(workload, settings));
  plan.findings.push_back(workload);
  add_leftovers(observed, settings, plan);
  plan.ready = workload.holds;
  return plan;
}

Plan plan_orphans(const std::vector<k8s::ObjectPtr>& templates, const Settings& settings) {
  Plan plan;
  for (const k8s::ObjectPtr& object : templates) {
    // Without its DaemonSet a daemon template is not ours to judge: see add_leftovers().
    if (settings.mode == ImexMode::host_managed && !is_target(*object, target_workload)) continue;
    plan_removal(Kind::claim_template, object, plan.actions);
  }
  return plan;
}

}  // namespace nvdra::roles::controller
