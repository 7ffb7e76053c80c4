#include "roles/controller/patches.hpp"

#include "k8s/conditions.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::roles::controller {
namespace {

constexpr std::array<std::string_view, 4> owned_types{"Ready", "TemplateReady", "DaemonsReady",
                                                      "ModeConflict"};

// RFC 6901: '~' and '/' inside a key.
std::string pointer_part(std::string_view key) {
  std::string text;
  for (char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

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

std::optional<Json> status_patch(const k8s::Object& domain, const Plan& plan,
                                 WallClock::time_point now) {
  Json status = {{"status", plan.ready ? "Ready" : "NotReady"},
                 {"observedGeneration", domain.generation()},
                 {"conditions", conditions(domain, plan, now)}};
  const Json* before = find(domain.json(), "status");
  if (before && contains(*before, status)) return std::nullopt;
  return Json{{"status", std::move(status)}};
}

std::vector<Finding> news(const k8s::Object& domain, const Plan& plan) {
  std::vector<Finding> fresh;
  for (const Finding& finding : plan.findings) {
    const Json* before = k8s::find_condition(conditions_of(domain), finding.type);
    if (!before || text_or_empty(*before, "reason") != finding.reason ||
        text_or_empty(*before, "message") != finding.message)
      fresh.push_back(finding);
  }
  return fresh;
}

}  // namespace nvdra::roles::controller
