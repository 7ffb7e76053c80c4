#include "sandbox/store_registry.hpp"

#include "base/try.hpp"
#include "sandbox/crd_definition.hpp"
#include "sandbox/crd_schema.hpp"
#include "sandbox/store_defaults.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_patch.hpp"
#include "sandbox/store_rules.hpp"
#include "sandbox/store_token.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

Failure not_found(const Resource& resource, std::string_view name) {
  return deny(Reason::not_found, fmt::format("{} \"{}\" not found", resource.qualified(), name));
}

Failure conflict(const Resource& resource, std::string_view name) {
  return deny(Reason::conflict,
              fmt::format("Operation cannot be fulfilled on {} \"{}\": the object has been "
                          "modified; please apply your changes to the latest version and try again",
                          resource.qualified(), name));
}

Failure invalid(const Resource& resource, std::string_view name,
                const std::vector<std::string>& errors) {
  std::string what =
      errors.size() == 1 ? errors.front() : fmt::format("[{}]", fmt::join(errors, ", "));
  std::string kind = resource.type.kind;
  if (!resource.type.group.empty()) kind += "." + resource.type.group;
  return deny(Reason::invalid, fmt::format("{} \"{}\" is invalid: {}", kind, name, what));
}

// The object must say what the address says, or nothing.
Result<void> check_address(const Resource& resource, const ObjectKey& key, const Json& object) {
  std::string_view kind = text_or_empty(object, "kind");
  if (!kind.empty() && kind != resource.type.kind)
    return deny(Reason::bad_request, fmt::format("{} in the request body is a {}, not a {}",
                                                 resource.type.plural, kind, resource.type.kind));
  std::string_view space = text_or_empty(object, "metadata/namespace");
  if (resource.type.namespaced && !space.empty() && space != key.space)
    return deny(Reason::bad_request,
                fmt::format("the namespace of the provided object does not match the namespace "
                            "sent on the request: {} and {}",
                            space, key.space));
  std::string_view name = text_or_empty(object, "metadata/name");
  if (!key.name.empty() && !name.empty() && name != key.name)
    return deny(Reason::bad_request,
                fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                            name, key.name));
  return ok();
}

void put_envelope(const Resource& resource, Json& object) {
  JsonObject& old = object.get_object();
  JsonObject ordered{{"apiVersion", resource.type.api_version()}, {"kind", resource.type.kind}};
  for (auto& [name, value] : old)
    if (name != "apiVersion" && name != "kind") ordered[name] = std::move(value);
  object = std::move(ordered);
}

}  // namespace

Registry::Registry(Time& time) : Registry(time, Options{}) {}

Registry::Registry(Time& time, Options options)
    : time_(time), catalog_(std::move(options.resource_versions)), feed_(options.bounds) {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    Json space = JsonObject{{"metadata", JsonObject{{"name", name}}}};
    Result<ItemPtr> made = create(catalog_.at("namespaces"), {}, std::move(space));
    (void)made;  // cannot fail: the names are legal and new
  }
}

ItemPtr Registry::find(const Resource& resource, const ObjectKey& key) const {
  auto objects = objects_.find(&resource);
  if (objects == objects_.end()) return nullptr;
  auto found = objects->second.find(key);
  return found == objects->second.end() ? nullptr : found->second;
}

Result<ItemPtr> Registry::get(const Resource& resource, const ObjectKey& key) const {
  ItemPtr item = find(resource, key);
  if (!item) return not_found(resource, key.name);
  return item;
}

Result<void> Registry::check_space(const Resource& resource, const std::string& space) const {
  if (!resource.type.namespaced) return ok();
  if (space.empty())
    return deny(Reason::bad_request, "an empty namespace may not be set during creation");
  ItemPtr found = find(catalog_.at("namespaces"), {"", space});
  if (!found) return not_found(catalog_.at("namespaces"), space);
  if (found->deleting())
    return deny(Reason::forbidden,
                fmt::format("{} is forbidden: unable to create new content in namespace {} because "
                            "it is being terminated",
                            resource.qualified(), space));
  return ok();
}

// Defaults and pruning, then everything that can be wrong.
Result<std::vector<std::string>> Registry::conform(const Resource& resource, Json& object,
                                                   const Json* before,
                                                   const WriteOptions& options) const {
  std::vector<std::string> errors;
  if (resource.schema) {
    std::vector<std::string> unknown = prune(*resource.schema, object);
    std::ranges::sort(unknown);
    if (!unknown.empty() && options.strict)
      return deny(Reason::bad_request,
                  fmt::format("{} in version \"{}\" cannot be handled as a {}: strict decoding "
                              "error: unknown field \"{}\"",
                              resource.type.kind, resource.type.version, resource.type.kind,
                              fmt::join(unknown, "\", unknown field \"")));
    fill_defaults(*resource.schema, object);
    errors = schema_errors(*resource.schema, object, before);
  }
  fill_built_in_defaults(resource, object);
  std::vector<std::string> more = rule_errors(resource, object, before);
  errors.insert(errors.end(), more.begin(), more.end());
  if (resource.type.plural == "customresourcedefinitions" && errors.empty()) {
    TRY(Resource made, resource_of_crd(object));
    (void)made;
  }
  return errors;
}

Result<ItemPtr> Registry::create(const Resource& resource, const std::string& space, Json object,
                                 const WriteOptions& options) {
  if (!object.is_object()) return deny(Reason::bad_request, "the request's body is no object");
  TRY_VOID(check_address(resource, {space, ""}, object));
  TRY_VOID(check_space(resource, space));
  put_envelope(resource, object);
  JsonObject& metadata = metadata_of(object);
  if (!text_or_empty(object, "metadata/resourceVersion").empty())
    return deny(Reason::internal, "resourceVersion should not be set on objects to be created");
  std::string prefix(text_or_empty(object, "metadata/generateName"));
  bool generated = text_or_empty(object, "metadata/name").empty();
  if (generated && prefix.empty())
    return deny(Reason::invalid,
                fmt::format("{}{}{} \"\" is invalid: metadata.name: Required value: name or "
                            "generateName is required",
                            resource.type.kind, resource.type.group.empty() ? "" : ".",
                            resource.type.group));
  if (generated) metadata["name"] = prefix.substr(0, 58) + name_suffix(random_());
  for (std::string_view field : {"resourceVersion", "selfLink", "managedFields", "generation",
                                 "deletionTimestamp", "deletionGracePeriodSeconds", "namespace"})
    metadata.erase(field);
  if (resource.type.namespaced) metadata["namespace"] = space;
  metadata["uid"] = make_uid(random_);
  metadata["creationTimestamp"] = rfc3339(time_.wall());
  if (resource.has_generation) metadata["generation"] = 1;
  begin_status(resource, object);

  ObjectKey key{resource.type.namespaced ? space : "",
                std::string(text_or_empty(object, "metadata/name"))};
  if (find(resource, key)) {
    if (generated) {
      metadata_of(object).erase("name");
      return create(resource, space, std::move(object), options);
    }
    return deny(Reason::already_exists,
                fmt::format("{} \"{}\" already exists", resource.qualified(), key.name));
  }
  TRY(std::vector<std::string> errors, conform(resource, object, nullptr, options));
  if (!errors.empty()) return invalid(resource, key.name, errors);
  if (options.dry_run) return std::make_shared<const Item>(std::move(object));
  return commit({resource, std::move(key)}, nullptr, std::move(object));
}

Result<ItemPtr> Registry::update(const Resource& resource, const ObjectKey& key, Json object,
                                 const WriteOptions& options) {
  if (!object.is_object()) return deny(Reason::bad_request, "the request's body is no object");
  TRY(ItemPtr before, get(resource, key));
  TRY_VOID(check_address(resource, key, object));
  if (resource.needs_version && text_or_empty(object, "metadata/resourceVersion").empty())
    return deny(
        Reason::invalid,
        fmt::format("{} \"{}\" is invalid: metadata.resourceVersion: Invalid value: 0: must "
                    "be specified for an update",
                    resource.qualified(), key.name));
  std::string_view uid = text_or_empty(object, "metadata/uid");
  if (!uid.empty() && uid != before->uid())
    return deny(Reason::conflict,
                fmt::format("Operation cannot be fulfilled on {} \"{}\": Precondition failed: UID "
                            "in precondition: {}, UID in object meta: {}",
                            resource.qualified(), key.name, uid, before->uid()));
  return write({resource, key}, before, std::move(object), options);
}

Result<ItemPtr> Registry::write(const Place& place, const ItemPtr& before, Json object,
                                const WriteOptions& options) {
  const auto& [resource, key] = place;
  std::string_view version = text_or_empty(object, "metadata/resourceVersion");
  if (!version.empty() && version != before->version()) return conflict(resource, key.name);
  std::string_view uid = text_or_empty(object, "metadata/uid");
  if (!uid.empty() && uid != before->uid())
    return invalid(resource, key.name,
                   {fmt::format("metadata.uid: Invalid value: \"{}\": field is immutable", uid)});
  keep_foreign_parts(resource, options.subresource, before->json(), object);
  metadata_of(object)["resourceVersion"] = before->version();
  put_envelope(resource, object);
  TRY(std::vector<std::string> errors, conform(resource, object, &before->json(), options));
  if (!errors.empty()) return invalid(resource, key.name, errors);
  if (object == before->json()) return before;
  if (resource.has_generation && desired_state_differs(resource, before->json(), object))
    metadata_of(object)["generation"] = int_or(object, "metadata/generation", 0) + 1;
  if (options.dry_run) return std::make_shared<const Item>(std::move(object));
  bool last_finalizer_gone = before->deleting() &&
                             array_or_empty(object, "metadata/finalizers").empty() &&
                             int_or(object, "metadata/deletionGracePeriodSeconds", 0) == 0 &&
                             array_or_empty(object, "spec/finalizers").empty();
  if (!last_finalizer_gone) return commit(place, before, std::move(object));
  ItemPtr last = std::make_shared<const Item>(std::move(object));
  erase(place, last);
  return last;
}

Result<ItemPtr> Registry::patch(const Resource& resource, const ObjectKey& key, const Json& patch,
                                PatchForm form, const WriteOptions& options) {
  if (form == PatchForm::apply) return apply({resource, key}, patch, options);
  TRY(ItemPtr before, get(resource, key));
  Json object = before->json();
  switch (form) {
    case PatchForm::json: {
      TRY(object, json_patch(std::move(object), patch));
      break;
    }
    case PatchForm::strategic: {
      if (resource.custom)
        return deny(Reason::unsupported_media,
                    "the body of the request was in an unknown format - accepted media types "
                    "include: application/json-patch+json, application/merge-patch+json, "
                    "application/apply-patch+yaml");
      TRY(object, strategic_merge(std::move(object), patch));
      break;
    }
    case PatchForm::merge:
    case PatchForm::apply: merge_patch(object, patch);
  }
  if (!object.is_object()) return deny(Reason::bad_request, "the patched value is no object");
  TRY_VOID(check_address(resource, key, object));
  return write({resource, key}, before, std::move(object), options);
}

Result<ItemPtr> Registry::apply(const Place& place, const Json& patch,
                                const WriteOptions& options) {
  const auto& [resource, key] = place;
  TRY_VOID(check_address(resource, key, patch));
  ItemPtr before = find(resource, key);
  if (!before) {
    if (!options.subresource.empty()) return not_found(resource, key.name);
    Json object = patch;
    metadata_of(object)["name"] = key.name;
    TRY(ItemPtr made, create(resource, key.space, std::move(object), options));
    if (!options.dry_run) applied_[fmt::format("{}/{}", options.manager, made->uid())] = patch;
    return made;
  }
  std::string owner = fmt::format("{}/{}", options.manager, before->uid());
  auto last = applied_.find(owner);
  Json object = apply_merge(before->json(), patch, last == applied_.end() ? Json() : last->second,
                            resource.schema.get());
  TRY(ItemPtr written, write(place, before, std::move(object), options));
  if (!options.dry_run) applied_[owner] = patch;
  return written;
}

ItemPtr Registry::commit(const Place& place, const ItemPtr& before, Json object) {
  std::uint64_t version = ++version_;
  metadata_of(object)["resourceVersion"] = std::to_string(version);
  auto item = std::make_shared<const Item>(std::move(object));
  objects_[&place.resource][place.key] = item;
  feed_.publish(std::make_shared<Change>(&place.resource, version, before, item, nullptr));
  if (place.resource.type.plural == "customresourcedefinitions") definition_changed(before, item);
  return item;
}

}  // namespace nvdra::sandbox
