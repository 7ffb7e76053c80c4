// Deletion, binding, and what follows a change of a CRD.
#include "base/try.hpp"
#include "sandbox/crd_definition.hpp"
#include "sandbox/crd_yaml.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view crd_cleanup = "customresourcecleanup.apiextensions.k8s.io";

// The seconds that the kubelet has for a pod; everything else goes at once.
std::int64_t grace_of(const Resource& resource, const Item& item, const RemoveOptions& options) {
  if (resource.type.plural != "pods" || resource.custom) return 0;
  const Json& pod = item.json();
  std::string_view phase = text_or_empty(pod, "status/phase");
  bool nobody_runs_it =
      text_or_empty(pod, "spec/nodeName").empty() || phase == "Succeeded" || phase == "Failed";
  if (nobody_runs_it) return 0;
  return options.grace.value_or(int_or(pod, "spec/terminationGracePeriodSeconds", 30));
}

bool waits_for_finalizers(const Json& object) {
  return !array_or_empty(object, "metadata/finalizers").empty() ||
         (text_or_empty(object, "kind") == "Namespace" &&
          !array_or_empty(object, "spec/finalizers").empty());
}

void add_finalizer(Json& object, std::string_view name) {
  Json& finalizers = metadata_of(object)["finalizers"];
  if (!finalizers.is_array()) finalizers = JsonArray{};
  JsonArray& list = finalizers.get_array();
  if (std::ranges::find(list, Json(name)) == list.end()) list.emplace_back(name);
}

}  // namespace

Result<void> Registry::check_preconditions(const Place& place, const Item& item,
                                           const RemoveOptions& options) const {
  auto failed = [&](std::string_view what, std::string_view wanted, std::string_view found,
                    std::string_view perhaps) {
    const k8s::ResourceType& type = place.resource.type;
    return deny(Reason::conflict,
                fmt::format("Operation cannot be fulfilled on {}{}{} \"{}\": the {} in the "
                            "precondition ({}) does not match the {} in record ({}). The object "
                            "might have been {}",
                            type.kind, type.group.empty() ? "" : ".", type.group, place.key.name,
                            what, wanted, what, found, perhaps));
  };
  if (!options.uid.empty() && options.uid != item.uid())
    return failed("UID", options.uid, item.uid(), "deleted and then recreated");
  if (!options.version.empty() && options.version != item.version())
    return failed("ResourceVersion", options.version, item.version(), "modified");
  return ok();
}

Result<Removal> Registry::remove(const Resource& resource, const ObjectKey& key,
                                 const RemoveOptions& options) {
  TRY(ItemPtr item, get(resource, key));
  Place place{resource, key};
  TRY_VOID(check_preconditions(place, *item, options));
  if (options.dry_run) return Removal{item, false};
  return mark_deleted(place, item, grace_of(resource, *item, options), options);
}

Removal Registry::mark_deleted(const Place& place, const ItemPtr& item, std::int64_t grace,
                               const RemoveOptions& options) {
  Json object = item->json();
  if (!item->deleting() && options.propagation == "Foreground")
    add_finalizer(object, "foregroundDeletion");
  if (!item->deleting() && options.propagation == "Orphan") add_finalizer(object, "orphan");
  bool finalizers = waits_for_finalizers(object);
  if (grace == 0 && !finalizers) return {erase(place, item), true};

  JsonObject& metadata = metadata_of(object);
  std::int64_t granted = int_or(object, "metadata/deletionGracePeriodSeconds", grace);
  if (item->deleting() && grace >= granted) return {item, false};
  metadata["deletionTimestamp"] = rfc3339(time_.wall() + std::chrono::seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  if (place.resource.has_generation)
    metadata["generation"] = int_or(object, "metadata/generation", 0) + 1;
  if (place.resource.type.plural == "namespaces")
    object.get_object()["status"] = JsonObject{{"phase", "Terminating"}};
  return {commit(place, item, std::move(object)), false};
}

// Takes the object out of the world. `before` is its last state.
ItemPtr Registry::erase(const Place& place, const ItemPtr& before) {
  std::uint64_t version = ++version_;
  Json object = before->json();
  metadata_of(object)["resourceVersion"] = std::to_string(version);
  auto last = std::make_shared<const Item>(std::move(object));
  objects_[&place.resource].erase(place.key);
  std::erase_if(applied_, [&](const auto& entry) {
    return entry.first.ends_with(fmt::format("/{}", before->uid()));
  });
  feed_.publish(std::make_shared<Change>(&place.resource, version, before, nullptr, last));
  if (place.resource.type.plural == "customresourcedefinitions")
    definition_changed(before, nullptr);
  return last;
}

Result<ItemPtr> Registry::bind(const ObjectKey& pod, const std::string& node) {
  const Resource& pods = catalog_.at("pods");
  TRY(ItemPtr before, get(pods, pod));
  if (before->deleting())
    return deny(Reason::conflict,
                fmt::format("pod {} is being deleted, cannot be assigned to a host", pod.name));
  std::string_view assigned = text_or_empty(before->json(), "spec/nodeName");
  if (!assigned.empty())
    return deny(Reason::conflict, fmt::format("Operation cannot be fulfilled on pods/binding "
                                              "\"{}\": pod {} is already assigned to node \"{}\"",
                                              pod.name, pod.name, assigned));
  Json object = before->json();
  object.get_object()["spec"].get_object()["nodeName"] = node;
  JsonObject scheduled{{"type", "PodScheduled"},
                       {"status", "True"},
                       {"lastProbeTime", nullptr},
                       {"lastTransitionTime", rfc3339(time_.wall())}};
  JsonObject& status = object.get_object()["status"].get_object();
  Json& conditions = status["conditions"];
  if (!conditions.is_array()) conditions = JsonArray{};
  JsonArray& list = conditions.get_array();
  for (auto at = list.begin(); at != list.end();)
    at = text_or_empty(*at, "type") == "PodScheduled" ? list.erase(at) : at + 1;
  list.push_back(std::move(scheduled));
  return commit({pods, pod}, before, std::move(object));
}

Result<void> Registry::finalize_space(const std::string& name) {
  const Resource& spaces = catalog_.at("namespaces");
  Place place{spaces, {"", name}};
  TRY(ItemPtr before, get(spaces, place.key));
  Json object = before->json();
  object.get_object()["spec"] = JsonObject{{"finalizers", JsonArray{}}};
  if (before->deleting() && !waits_for_finalizers(object))
    erase(place, before);
  else
    commit(place, before, std::move(object));
  return ok();
}

void Registry::definition_changed(const ItemPtr& before, const ItemPtr& after) {
  if (!after) {
    Result<Resource> gone = resource_of_crd(before->json());
    if (gone) catalog_.remove(gone->type.group, gone->type.plural);
    return;
  }
  const Json* old_spec = before ? nvdra::find(before->json(), "spec") : nullptr;
  if (old_spec && *old_spec == *nvdra::find(after->json(), "spec")) return;
  Result<Resource> resource = resource_of_crd(after->json());
  if (!resource) return;  // conform() has refused it
  const std::string name = fmt::format("{}.{}", resource->type.plural, resource->type.group);
  catalog_.put(*std::move(resource));
  if (!before) feed_.begin(catalog_.at(name), version_);
  Json object = after->json();
  object.get_object()["status"] = established_status(object, rfc3339(time_.wall()));
  if (!before) add_finalizer(object, crd_cleanup);
  commit({catalog_.at("customresourcedefinitions"), after->key()}, after, std::move(object));
}

Result<void> Registry::add_crds(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  if (failed) return fail(failed, fmt::format("read the CRDs of {}", folder));
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    TRY(std::vector<Json> documents, read_yaml_file(path));
    for (Json& document : documents) {
      if (text_or_empty(document, "kind") != "CustomResourceDefinition") continue;
      Result<ItemPtr> made =
          create(catalog_.at("customresourcedefinitions"), {}, std::move(document));
      if (!made) return std::move(made).failure().during(path);
    }
  }
  return ok();
}

}  // namespace nvdra::sandbox
