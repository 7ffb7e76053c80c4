#include "roles/common/names.hpp"
#include "roles/controller/plan_parts.hpp"

#include <fmt/format.h>

namespace nvdra::roles::controller {
namespace {

std::string conflict_message(const Domain& domain, const Observed& observed) {
  std::string place = domain.key.space + "/" + domain.template_name;
  if (!observed.occupant_owner.empty())
    return fmt::format(
        "ResourceClaimTemplate {} belongs to ComputeDomain {}: delete that one, or create this "
        "one again with another spec.channel.resourceClaimTemplate.name",
        place, observed.occupant_owner);
  return fmt::format(
      "ResourceClaimTemplate {} exists and was not created for this ComputeDomain: delete it, or "
      "create the ComputeDomain again with another spec.channel.resourceClaimTemplate.name",
      place);
}

Finding invalid_name(const Domain& domain) {
  std::string message =
      domain.template_name.empty()
          ? "spec.channel.resourceClaimTemplate.name is missing: create the ComputeDomain again "
            "with a template name"
          : fmt::format(
                "spec.channel.resourceClaimTemplate.name \"{}\" is no legal object name (lower "
                "case letters, digits, '-', '.', at most 253): create the ComputeDomain again "
                "with another",
                domain.template_name.substr(0, 80));
  return {"TemplateReady", false, "InvalidTemplateName", message, true};
}

const Json& spec_of(const Json& object) {
  static const Json nothing;
  const Json* spec = find(object, "spec");
  return spec ? *spec : nothing;
}

}  // namespace

void plan_removal(Kind kind, const k8s::ObjectPtr& object, std::vector<Action>& actions) {
  if (!object->deleting()) actions.push_back(Delete{kind, object});
  if (object->has_finalizer(finalizer)) actions.push_back(Release{kind, object});
}

std::optional<Finding> plan_own_template(const k8s::ObjectPtr& found, const Json& wanted,
                                         std::vector<Action>& actions) {
  std::string place = "ResourceClaimTemplate " + found->key().text();
  if (found->deleting() || !contains(spec_of(found->json()), spec_of(wanted))) {
    std::size_t before = actions.size();
    plan_removal(Kind::claim_template, found, actions);
    if (actions.size() == before)
      return Finding{"", false, "TemplateTerminating",
                     place + " is being deleted and waits for finalizers of others"};
    return Finding{"", false, "Recreating", "creating " + place + " again"};
  }
  const JsonObject& labels = object_or_empty(wanted, "metadata/labels");
  if (!contains(found->json().at("metadata"), Json{{"labels", labels}}) ||
      !found->has_finalizer(finalizer))
    actions.push_back(Mark{Kind::claim_template, found, labels});
  return std::nullopt;
}

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
  if (std::optional<Finding> trouble = plan_own_template(found, wanted, actions)) {
    trouble->type = "TemplateReady";
    return *std::move(trouble);
  }
  return {"TemplateReady", true, "TemplateCreated", "ResourceClaimTemplate " + place + " exists"};
}

}  // namespace nvdra::roles::controller
