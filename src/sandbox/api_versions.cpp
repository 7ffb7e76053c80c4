#include "sandbox/api_versions.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view inside_exactly[] = {"deviceClassName", "selectors",   "allocationMode",
                                               "count",           "adminAccess", "tolerations",
                                               "capacity"};

JsonArray* list_at(Json& object, std::initializer_list<std::string_view> path) {
  Json* at = &object;
  for (std::string_view step : path) {
    JsonObject* inner = at->if_object();
    at = inner ? inner->if_contains(step) : nullptr;
    if (!at) return nullptr;
  }
  return at->if_array();
}

// {name, exactly: {deviceClassName, …}} ↔ {name, deviceClassName, …}
void flatten_request(JsonObject& request) {
  Json* exactly = request.if_contains("exactly");
  if (!exactly || !exactly->is_object()) return;
  JsonObject fields = std::move(exactly->get_object());
  request.erase("exactly");
  for (auto& [name, value] : fields) request[name] = std::move(value);
}

void nest_request(JsonObject& request) {
  if (!request.contains("deviceClassName")) return;
  JsonObject exactly;
  for (std::string_view field : inside_exactly) {
    Json* value = request.if_contains(field);
    if (!value) continue;
    exactly[field] = std::move(*value);
    request.erase(field);
  }
  request["exactly"] = std::move(exactly);
}

// {name, attributes} ↔ {name, basic: {attributes}}
void wrap_device(JsonObject& device) {
  JsonObject basic;
  std::vector<std::string> moved;
  for (auto& [name, value] : device) {
    if (name == "name") continue;
    basic[name] = std::move(value);
    moved.emplace_back(name);
  }
  for (const std::string& name : moved) device.erase(name);
  device["basic"] = std::move(basic);
}

void unwrap_device(JsonObject& device) {
  Json* basic = device.if_contains("basic");
  if (!basic || !basic->is_object()) return;
  JsonObject fields = std::move(basic->get_object());
  device.erase("basic");
  for (auto& [name, value] : fields) device[name] = std::move(value);
}

void each_object(JsonArray* list, void (*change)(JsonObject&)) {
  if (!list) return;
  for (Json& item : *list)
    if (JsonObject* object = item.if_object()) change(*object);
}

JsonArray* requests_of(const Resource& resource, Json& object) {
  if (resource.type.plural == "resourceclaims")
    return list_at(object, {"spec", "devices", "requests"});
  if (resource.type.plural == "resourceclaimtemplates")
    return list_at(object, {"spec", "spec", "devices", "requests"});
  return nullptr;
}

std::string api_version(const Resource& resource, std::string_view version) {
  return resource.type.group.empty() ? std::string(version)
                                     : fmt::format("{}/{}", resource.type.group, version);
}

}  // namespace

Json to_served(const Resource& resource, std::string_view version, Json stored) {
  if (version == resource.type.version || !stored.is_object()) return stored;
  stored.get_object()["apiVersion"] = api_version(resource, version);
  if (resource.type.group != "resource.k8s.io" || version != "v1beta1") return stored;
  each_object(requests_of(resource, stored), flatten_request);
  if (resource.type.plural == "resourceslices")
    each_object(list_at(stored, {"spec", "devices"}), wrap_device);
  return stored;
}

Json to_stored(const Resource& resource, std::string_view version, Json served) {
  if (version == resource.type.version || !served.is_object()) return served;
  served.get_object()["apiVersion"] = resource.type.api_version();
  if (resource.type.group != "resource.k8s.io" || version != "v1beta1") return served;
  each_object(requests_of(resource, served), nest_request);
  if (resource.type.plural == "resourceslices")
    each_object(list_at(served, {"spec", "devices"}), unwrap_device);
  return served;
}

}  // namespace nvdra::sandbox
