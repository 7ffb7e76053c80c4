#include "sandbox/controllers_placement.hpp"

#include "sandbox/store_selector.hpp"

#include <algorithm>

namespace nvdra::sandbox {
namespace {

bool term_matches(const Json& term, const Json& node) {
  const JsonArray& expressions = array_or_empty(term, "matchExpressions");
  const JsonArray& fields = array_or_empty(term, "matchFields");
  if (expressions.empty() && fields.empty()) return false;  // an empty term selects nothing
  Selector labels;
  for (const Json& expression : expressions)
    labels.requirements.push_back(requirement_of(expression));
  Selector of_fields;
  for (const Json& field : fields) of_fields.requirements.push_back(requirement_of(field));
  return labels.matches_labels(object_or_empty(node, "metadata/labels")) &&
         of_fields.matches_fields(node);
}

bool tolerates(const Json& toleration, const Json& taint) {
  std::string_view effect = text_or_empty(toleration, "effect");
  if (!effect.empty() && effect != text_or_empty(taint, "effect")) return false;
  std::string_view key = text_or_empty(toleration, "key");
  if (!key.empty() && key != text_or_empty(taint, "key")) return false;
  if (text_or_empty(toleration, "operator") == "Exists") return true;
  return !key.empty() && text_or_empty(toleration, "value") == text_or_empty(taint, "value");
}

bool tolerated(const Json& pod_spec, const Json& taint) {
  return std::ranges::any_of(array_or_empty(pod_spec, "tolerations"),
                             [&](const Json& toleration) { return tolerates(toleration, taint); });
}

Json taint_of(std::string_view key) {
  return JsonObject{{"key", key}, {"effect", "NoSchedule"}};
}

bool reports_not_ready(const Json& node) {
  for (const Json& condition : array_or_empty(node, "status/conditions"))
    if (text_or_empty(condition, "type") == "Ready")
      return text_or_empty(condition, "status") != "True";
  return false;
}

}  // namespace

bool node_selector_matches(const Json& node_selector, const Json& node) {
  return std::ranges::any_of(array_or_empty(node_selector, "nodeSelectorTerms"),
                             [&](const Json& term) { return term_matches(term, node); });
}

Fit fit(const Json& pod_spec, const Json& node) {
  const JsonObject& labels = object_or_empty(node, "metadata/labels");
  for (const auto& [key, value] : object_or_empty(pod_spec, "nodeSelector")) {
    const Json* label = labels.if_contains(key);
    if (!label || *label != value) return Fit::wrong_node;
  }
  const Json* required =
      find(pod_spec, "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
  if (required && !node_selector_matches(*required, node)) return Fit::wrong_node;
  if (bool_or(node, "spec/unschedulable", false) &&
      !tolerated(pod_spec, taint_of("node.kubernetes.io/unschedulable")))
    return Fit::unschedulable;
  if (reports_not_ready(node) && !tolerated(pod_spec, taint_of("node.kubernetes.io/not-ready")))
    return Fit::tainted;
  for (const Json& taint : array_or_empty(node, "spec/taints"))
    if (text_or_empty(taint, "effect") != "PreferNoSchedule" && !tolerated(pod_spec, taint))
      return Fit::tainted;
  return Fit::fits;
}

std::string_view fit_text(Fit fit) {
  switch (fit) {
    case Fit::fits: return "node(s) fit";
    case Fit::wrong_node: return "node(s) didn't match Pod's node affinity/selector";
    case Fit::tainted: return "node(s) had untolerated taint(s)";
    case Fit::unschedulable: return "node(s) were unschedulable";
  }
  __builtin_unreachable();
}

std::string_view pinned_node(const Json& pod_spec) {
  std::string_view node;
  for (const Json& term :
       array_or_empty(pod_spec,
                      "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
                      "nodeSelectorTerms")) {
    const JsonArray& fields = array_or_empty(term, "matchFields");
    if (fields.size() != 1 || text_or_empty(fields[0], "operator") != "In") return {};
    const JsonArray& values = array_or_empty(fields[0], "values");
    if (values.size() != 1 || !values[0].is_string()) return {};
    std::string_view name = values[0].get_string();
    if (!node.empty() && node != name) return {};
    node = name;
  }
  return node;
}

JsonArray daemon_tolerations() {
  JsonArray list;
  for (std::string_view key : {"not-ready", "unreachable"})
    list.push_back(JsonObject{{"key", "node.kubernetes.io/" + std::string(key)},
                              {"operator", "Exists"},
                              {"effect", "NoExecute"}});
  for (std::string_view key :
       {"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable", "not-ready"})
    list.push_back(JsonObject{{"key", "node.kubernetes.io/" + std::string(key)},
                              {"operator", "Exists"},
                              {"effect", "NoSchedule"}});
  return list;
}

}  // namespace nvdra::sandbox
