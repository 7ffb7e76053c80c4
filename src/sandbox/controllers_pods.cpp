#include "sandbox/controllers_pods.hpp"

#include "sandbox/store_rules.hpp"

#include <fmt/format.h>

#include <functional>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view daemon_hash_label = "controller-revision-hash";
constexpr std::string_view hash_label = "pod-template-hash";

std::string_view label_for(const Json& owner) {
  return text_or_empty(owner, "kind") == "DaemonSet" ? daemon_hash_label : hash_label;
}

}  // namespace

std::string template_hash(const Json& workload) {
  const Json* source = find(workload, "spec/template");
  std::uint64_t hash = std::hash<std::string>{}(source ? to_text(*source) : "");
  return name_suffix(hash) + name_suffix(hash >> 32);
}

bool has_hash(const Json& pod, std::string_view hash) {
  const Json* labels = find(pod, "metadata/labels");
  for (std::string_view label : {daemon_hash_label, hash_label}) {
    const Json* value = labels ? get(*labels, label) : nullptr;
    if (value) return *value == Json(hash);
  }
  return false;
}

std::vector<ItemPtr> pods_of_controller(Registry& registry, const Item& owner) {
  std::vector<ItemPtr> pods;
  for (const ItemPtr& pod : registry.all(registry.resource("pods"), owner.space()))
    if (controller_uid(pod->json()) == owner.uid()) pods.push_back(pod);
  return pods;
}

bool make_pod(Registry& registry, const Item& owner, Json spec, const std::string& hash,
              std::string_view component, const Json& more) {
  Json pod =
      JsonObject{{"metadata", JsonObject(object_or_empty(owner.json(), "spec/template/metadata"))},
                 {"spec", std::move(spec)}};
  JsonObject& metadata = metadata_of(pod);
  metadata.erase("creationTimestamp");
  metadata["generateName"] = fmt::format("{}-", owner.name());
  JsonObject labels = object_or_empty(pod, "metadata/labels");
  if (!hash.empty()) labels[label_for(owner.json())] = hash;
  metadata["labels"] = std::move(labels);
  metadata["ownerReferences"] = JsonArray{controller_reference(owner)};
  merge_patch(pod, more);
  Result<ItemPtr> made =
      registry.create(registry.resource("pods"), std::string(owner.space()), std::move(pod));
  if (!made) {
    record_event(registry, owner, "Warning", "FailedCreate",
                 fmt::format("Error creating: {}", made.error().doing), component);
    return false;
  }
  record_event(registry, owner, "Normal", "SuccessfulCreate",
               fmt::format("Created pod: {}", (*made)->name()), component);
  return true;
}

void remove_pod(Registry& registry, const Item& pod) {
  Result<Removal> removal =
      registry.remove(registry.resource("pods"), pod.key(), {.uid = std::string(pod.uid())});
  (void)removal;  // gone already
}

}  // namespace nvdra::sandbox
