#include "roles/common/names.hpp"
#include "roles/controller/daemon_set.hpp"
#include "roles/controller/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace nvdra::roles::controller {
namespace {

const Json& pod_template(const Json& daemon_set) {
  static const Json nothing = JsonObject{};
  const Json* found = find(daemon_set, "spec/template");
  return found ? *found : nothing;
}

const Json& first_container(const Json& daemon_set) {
  static const Json nothing = JsonObject{};
  const JsonArray& all = array_or_empty(pod_template(daemon_set), "spec/containers");
  return all.empty() ? nothing : all.front();
}

const Json* named(const JsonArray& list, std::string_view name) {
  auto found =
      std::ranges::find(list, name, [](const Json& entry) { return text_or_empty(entry, "name"); });
  return found == list.end() ? nullptr : &*found;
}

// What we set sometimes or never, and what changes a daemon when it is there. The server fills none
// of these in.
constexpr std::array pod_fields{"hostNetwork",      "hostPID",           "hostIPC",
                                "volumes",          "initContainers",    "hostAliases",
                                "imagePullSecrets", "priorityClassName", "securityContext",
                                "affinity",         "runtimeClassName",  "shareProcessNamespace"};
constexpr std::array container_fields{
    "args", "envFrom", "ports", "volumeMounts", "lifecycle", "securityContext", "volumeDevices"};

// false, "", [] and {} mean the same as nothing.
bool says_something(const Json* value) {
  if (!value || value->is_null()) return false;
  if (const JsonObject* fields = value->if_object()) return !fields->empty();
  if (const JsonArray* items = value->if_array()) return !items->empty();
  if (value->is_string()) return !value->get_string().empty();
  return !value->is_bool() || value->get_bool();
}

// The fields of `actual` that `wanted` does not have.
void add_surplus(const Json& actual, const Json& wanted, std::span<const char* const> keys,
                 std::vector<std::string>& names) {
  for (const char* key : keys)
    if (says_something(get(actual, key)) && !get(wanted, key)) names.emplace_back(key);
}

// What is set beyond the wanted template, as far as it matters. Both have one container.
std::vector<std::string> surplus(const Json& actual, const Json& wanted) {
  static const Json nothing = JsonObject{};
  std::vector<std::string> names;
  const Json* pod = get(pod_template(actual), "spec");
  add_surplus(pod ? *pod : nothing, pod_template(wanted).at("spec"), pod_fields, names);
  const Json& now = first_container(actual);
  const Json& then = first_container(wanted);
  add_surplus(now, then, container_fields, names);
  const bool amounts = std::ranges::any_of(
      std::array{"resources/limits", "resources/requests"}, [&](const char* path) {
        const JsonObject& asked = object_or_empty(then, path);
        return std::ranges::any_of(object_or_empty(now, path), [&](const auto& item) {
          return says_something(&item.value()) && !asked.contains(item.key());
        });
      });
  if (amounts) names.emplace_back("resources");
  return names;
}

// The factor of a Kubernetes quantity's suffix; nullopt: it is none.
std::optional<double> factor_of(std::string_view suffix) {
  constexpr std::string_view decimal = "num kMGTPE";  // from 10^-9 in steps of 10^3
  if (suffix.empty()) return 1;
  std::size_t step = suffix[0] == 'K' ? decimal.find('k') : decimal.find(suffix[0]);
  if (step == std::string_view::npos || suffix[0] == ' ') return std::nullopt;
  if (suffix.size() == 2 && suffix[1] == 'i' && step > 3)
    return std::pow(1024, static_cast<double>(step) - 3);
  if (suffix.size() > 1 || suffix[0] == 'K') return std::nullopt;
  return std::pow(1000, static_cast<double>(step) - 3);
}

// The amount that "250m", "1Gi", "2e3" or 2 stands for.
std::optional<double> amount_of(const Json& quantity) {
  if (quantity.is_number()) return quantity.to_number<double>();
  const auto* text = quantity.if_string();
  if (!text) return std::nullopt;
  double number = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{}) return std::nullopt;
  std::optional<double> factor = factor_of(std::string_view(end, text->data() + text->size()));
  if (!factor) return std::nullopt;
  return number * *factor;
}

bool same_amount(const Json& one, const Json& other) {
  std::optional<double> left = amount_of(one);
  std::optional<double> right = amount_of(other);
  return left && right && std::abs(*left - *right) <= 1e-9 * std::abs(*left);
}

// `wanted` with its quantities as `actual` spells them where they mean the same: the server stores
// 1 as "1" and "1024Mi" as "1Gi".
Json respelled(Json wanted, const Json& actual) {
  Json& container = wanted.at("spec").at("template").at("spec").at("containers").at(0);
  for (auto& [kind, amounts] : container.at("resources").get_object()) {
    if (!amounts.is_object()) continue;
    const JsonObject& there =
        object_or_empty(first_container(actual), "resources/" + std::string(kind));
    for (auto& [resource, amount] : amounts.get_object())
      if (const Json* stored = there.if_contains(resource); stored && same_amount(*stored, amount))
        amount = *stored;
  }
  return wanted;
}

}  // namespace

bool daemon_set_made_for(const k8s::Object& object, const DomainUid& uid) {
  const Json labels = {{domain_label, uid.value}};
  const Json* label = object.label(domain_label);
  if (label && *label != Json(uid.value)) return false;
  if (object.name() != daemon_object_name(uid)) return false;
  const Json* selector = find(object.json(), "spec/selector/matchLabels");
  if (!selector || *selector != labels) return false;
  const JsonArray& claims = array_or_empty(pod_template(object.json()), "spec/resourceClaims");
  return std::ranges::any_of(claims, [&](const Json& claim) {
    return text_or_empty(claim, "resourceClaimTemplateName") == daemon_object_name(uid);
  });
}

Fit fit(const k8s::Object& actual, const Json& wanted) {
  const Json* written = actual.annotation(template_digest_annotation);
  const Json& now = pod_template(actual.json());
  bool complete = contains(now, pod_template(wanted)) ||
                  contains(now, pod_template(respelled(wanted, actual.json())));
  if (complete && (!written || surplus(actual.json(), wanted).empty())) return Fit::same;
  const Json& digest = wanted.at("metadata").at("annotations").at(template_digest_annotation);
  return written && *written == digest ? Fit::edited : Fit::outdated;
}

std::string differences(const k8s::Object& actual, const Json& wanted) {
  const Json respelt = respelled(wanted, actual.json());
  const Json& now = first_container(actual.json());
  const Json& then = first_container(respelt);
  std::vector<std::string> names;
  auto compare = [&](const Json& left, const Json& right, std::string_view key) {
    const Json* value = get(right, key);
    const Json* there = get(left, key);
    if (value && (!there || !contains(*there, *value))) names.emplace_back(key);
  };
  for (const char* key : {"image", "command", "resources"}) compare(now, then, key);
  const JsonArray& there = array_or_empty(now, "env");
  for (const Json& wished : array_or_empty(then, "env")) {
    const Json* found = named(there, text_or_empty(wished, "name"));
    if (!found || !contains(*found, wished)) names.emplace_back(text_or_empty(wished, "name"));
  }
  for (const Json& extra : there)
    if (std::string_view name = text_or_empty(extra, "name");
        !named(array_or_empty(then, "env"), name))
      names.emplace_back(name);
  for (const auto& item : object_or_empty(pod_template(respelt), "spec"))
    if (item.key() != "containers")
      compare(pod_template(actual.json()).at("spec"), pod_template(respelt).at("spec"), item.key());
  for (std::string& name : surplus(actual.json(), wanted))
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  if (array_or_empty(pod_template(actual.json()), "spec/containers").size() > 1)
    names.emplace_back("containers");
  return names.empty() ? "its pod template" : fmt::format("{}", fmt::join(names, ", "));
}

Json roll_out_patch(const k8s::Object& actual, const Json& wanted) {
  const Json& metadata = wanted.at("metadata");
  JsonArray patch{
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", actual.version()}}};
  if (!find(actual.json(), "metadata/annotations"))
    patch.push_back({{"op", "add"}, {"path", "/metadata/annotations"}, {"value", JsonObject{}}});
  patch.push_back({{"op", "add"},
                   {"path",
                    "/metadata/annotations/resource.nvidia.com~1"
                    "computeDomain.daemonTemplateDigest"},
                   {"value", metadata.at("annotations").at(template_digest_annotation)}});
  patch.push_back({{"op", "replace"}, {"path", "/spec/template"}, {"value", pod_template(wanted)}});
  return patch;
}

}  // namespace nvdra::roles::controller
