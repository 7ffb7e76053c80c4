#include "sandbox/controllers_base.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace nvdra::sandbox {

bool Controller::work() {
  std::set<ObjectKey> keys = std::exchange(dirty_, {});
  for (const ObjectKey& key : keys) reconcile(key);
  return !keys.empty();
}

Json controller_reference(const Item& owner) {
  return JsonObject{{"apiVersion", text_or_empty(owner.json(), "apiVersion")},
                    {"kind", text_or_empty(owner.json(), "kind")},
                    {"name", owner.name()},
                    {"uid", owner.uid()},
                    {"controller", true},
                    {"blockOwnerDeletion", true}};
}

std::string_view controller_uid(const Json& object) {
  for (const Json& owner : array_or_empty(object, "metadata/ownerReferences"))
    if (bool_or(owner, "controller", false)) return text_or_empty(owner, "uid");
  return {};
}

bool placement_changed(const Change& change) {
  if (!is(change, "nodes")) return false;
  if (!change.before || !change.after) return true;
  for (std::string_view path : {"metadata/labels", "spec"}) {
    const Json* before = find(change.before->json(), path);
    const Json* after = find(change.after->json(), path);
    if (!before != !after || (before && *before != *after)) return true;
  }
  return is_ready(change.before->json()) != is_ready(change.after->json());
}

bool is_terminal(const Json& pod) {
  std::string_view phase = text_or_empty(pod, "status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool is_ready(const Json& pod) {
  return std::ranges::any_of(array_or_empty(pod, "status/conditions"), [](const Json& condition) {
    return text_or_empty(condition, "type") == "Ready" &&
           text_or_empty(condition, "status") == "True";
  });
}

void record_event(Registry& registry, const Item& about, std::string_view type,
                  std::string_view reason, std::string_view message, std::string_view component) {
  const Resource& events = registry.resource("events");
  std::string space(about.space().empty() ? "default" : about.space());
  std::string now = rfc3339(registry.time().wall());
  std::size_t hash = std::hash<std::string>{}(fmt::format("{}{}{}", type, reason, message));
  std::string name = fmt::format("{}.{:016x}", about.name(), hash);
  if (ItemPtr same = registry.find(events, {space, name});
      same && text_or_empty(same->json(), "involvedObject/uid") == about.uid()) {
    Json patch =
        JsonObject{{"count", int_or(same->json(), "count", 1) + 1}, {"lastTimestamp", now}};
    Result<ItemPtr> counted = registry.patch(events, same->key(), patch, PatchForm::merge);
    (void)counted;  // an Event that is gone by now is no loss
    return;
  }
  JsonObject involved{{"kind", text_or_empty(about.json(), "kind")},
                      {"apiVersion", text_or_empty(about.json(), "apiVersion")},
                      {"name", about.name()},
                      {"uid", about.uid()},
                      {"resourceVersion", about.version()}};
  if (!about.space().empty()) involved["namespace"] = about.space();
  Json event = JsonObject{{"metadata", JsonObject{{"name", name}}},
                          {"involvedObject", std::move(involved)},
                          {"type", type},
                          {"reason", reason},
                          {"message", message},
                          {"source", JsonObject{{"component", component}}},
                          {"reportingComponent", component},
                          {"reportingInstance", ""},
                          {"firstTimestamp", now},
                          {"lastTimestamp", now},
                          {"count", 1}};
  Result<ItemPtr> made = registry.create(events, space, std::move(event));
  (void)made;  // the namespace is going: nobody will read it
}

void set_condition(Json& object, JsonObject condition, std::string_view now) {
  Json& status = object.get_object()["status"];
  if (!status.is_object()) status = JsonObject{};
  Json& list = status.get_object()["conditions"];
  if (!list.is_array()) list = JsonArray{};
  condition["lastTransitionTime"] = now;
  for (Json& old : list.get_array()) {
    if (text_or_empty(old, "type") != std::string_view(condition["type"].get_string())) continue;
    if (text_or_empty(old, "status") == std::string_view(condition["status"].get_string()))
      condition["lastTransitionTime"] = text_or_empty(old, "lastTransitionTime");
    old = std::move(condition);
    return;
  }
  list.get_array().push_back(std::move(condition));
}

void put_status(Registry& registry, const Resource& resource, const ItemPtr& item, Json object) {
  Result<ItemPtr> written =
      registry.update(resource, item->key(), std::move(object), {.subresource = "status"});
  (void)written;  // gone or changed meanwhile: the change brings the controller back
}

}  // namespace nvdra::sandbox
