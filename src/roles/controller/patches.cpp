#include "roles/controller/patches.hpp"

#include "k8s/conditions.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::roles::controller {
namespace {

constexpr std::array<std::string_view, 7> owned_types{
    "Ready",        "TemplateReady", "DaemonsReady", "DaemonsCurrent",
    "SingleClique", "MembersValid",  "ModeConflict"};

const JsonArray& conditions_of(const k8s::Object& domain) {
  return array_or_empty(domain.json(), "status/conditions");
}

JsonArray conditions(const k8s::Object& domain, const Plan& plan, WallClock::time_point now) {
  JsonArray all = conditions_of(domain);
  for (std::string_view type : owned_types) {
    bool found = std::ranges::find(plan.findings, type, &Finding::type) != plan.findings.end();
    if (!found) all = k8s::remove_condition(all, type).conditions;
  }
  for (const Finding& finding : plan.findings)
    all = k8s::set_condition(all,
                             {finding.type, finding.holds ? "True" : "False", finding.reason,
                              finding.message, domain.generation()},
                             rfc3339(now))
              .conditions;
  return all;
}

JsonArray rendered(const std::vector<Member>& members) {
  JsonArray entries;
  for (const Member& member : members)
    entries.push_back(member_entry(member, MemberList::domain_nodes));
  return entries;
}

// Order is no difference: daemons append where they like.
bool same_nodes(const k8s::Object& domain, const std::vector<Member>& wanted) {
  const JsonArray& entries = array_or_empty(domain.json(), "status/nodes");
  if (entries.size() != wanted.size()) return false;
  Members now = read_members(domain.json(), MemberList::domain_nodes);
  return std::ranges::all_of(wanted, [&](const Member& member) {
    const Member* there = now.of(member.node);
    return there && member_entry(*there, MemberList::domain_nodes) ==
                        member_entry(member, MemberList::domain_nodes);
  });
}

// Equal in everything but the messages of conditions and the times.
bool same_but_for_words(const Json& before, const JsonObject& status) {
  for (const char* key : {"status", "observedGeneration", "nodeSummary"})
    if (const Json* value = status.if_contains(key);
        value && get(before, key) && *get(before, key) != *value)
      return false;
  const JsonArray& old = array_or_empty(before, "conditions");
  const JsonArray& fresh = status.at("conditions").get_array();
  return old.size() == fresh.size() && std::ranges::all_of(fresh, [&](const Json& condition) {
           const Json* there = k8s::find_condition(old, text_or_empty(condition, "type"));
           return there && text_or_empty(*there, "status") == text_or_empty(condition, "status") &&
                  text_or_empty(*there, "reason") == text_or_empty(condition, "reason");
         });
}

}  // namespace

Json release_patch(const k8s::Object& object) {
  std::string path = fmt::format("/metadata/finalizers/{}", object.finalizer_index(finalizer));
  return JsonArray{{{"op", "test"}, {"path", path}, {"value", finalizer}},
                   {{"op", "remove"}, {"path", path}}};
}

Json mark_patch(const k8s::Object& object, const JsonObject& labels) {
  JsonArray patch{
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", object.version()}}};
  auto add = [&](const std::string& path, Json value) {
    patch.push_back({{"op", "add"}, {"path", path}, {"value", std::move(value)}});
  };
  if (!object.has_finalizer(finalizer)) {
    if (find(object.json(), "metadata/finalizers")) {
      add("/metadata/finalizers/-", Json(finalizer));
    } else {
      add("/metadata/finalizers", JsonArray{finalizer});
    }
  }
  if (labels.empty()) return patch;
  if (!find(object.json(), "metadata/labels")) {
    add("/metadata/labels", labels);
    return patch;
  }
  for (const auto& [key, value] : labels) add("/metadata/labels/" + pointer_part(key), value);
  return patch;
}

Json prune_patch(const Stale& stale) {
  std::vector<Member> last_first = stale.members;
  std::ranges::sort(last_first, std::greater{}, &Member::position);
  JsonArray patch;
  for (const Member& member : last_first) {
    std::string path =
        fmt::format("{}/{}", members_pointer(MemberList::clique_daemons), member.position);
    patch.push_back({{"op", "test"}, {"path", path + "/ipAddress"}, {"value", member.ip}});
    for (Json& step : remove_patch(member, MemberList::clique_daemons))
      patch.push_back(std::move(step));
  }
  return patch;
}

std::optional<StatusChange> status_patch(const k8s::Object& domain, const Plan& plan,
                                         WallClock::time_point now) {
  JsonObject status{{"status", plan.ready ? "Ready" : "NotReady"},
                    {"observedGeneration", domain.generation()},
                    {"conditions", conditions(domain, plan, now)}};
  const Json* before = find(domain.json(), "status");
  bool summarized = !plan.node_summary.empty() || (before && get(*before, "nodeSummary"));
  if (plan.nodes && summarized) status["nodeSummary"] = plan.node_summary;
  bool nodes_differ = plan.nodes && !same_nodes(domain, *plan.nodes);
  if (before && contains(*before, status) && !nodes_differ) return std::nullopt;

  JsonObject patch;
  bool urgent = nodes_differ || !before || !same_but_for_words(*before, status);
  if (nodes_differ) {
    status["nodes"] = plan.nodes->empty() ? Json(nullptr) : Json(rendered(*plan.nodes));
    patch["metadata"] = JsonObject{{"resourceVersion", domain.version()}};
  }
  patch["status"] = std::move(status);
  return StatusChange{std::move(patch), urgent};
}

std::vector<Finding> news(const k8s::Object& domain, const Plan& plan) {
  std::vector<Finding> fresh;
  for (const Finding& finding : plan.findings) {
    const Json* before = k8s::find_condition(conditions_of(domain), finding.type);
    if (!before || text_or_empty(*before, "reason") != finding.reason ||
        (finding.warning && text_or_empty(*before, "message") != finding.message))
      fresh.push_back(finding);
  }
  return fresh;
}

}  // namespace nvdra::roles::controller
