#include "sandbox/store_rules.hpp"

#include "sandbox/store_selector.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  char last = '.';
  for (char c : text) {
    bool dot = c == '.', dash = c == '-';
    if (!dot && !dash && !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) return false;
    if ((dot || dash) && last == '.') return false;
    if (dot && last == '-') return false;
    last = c;
  }
  return last != '.' && last != '-';
}

bool is_label(std::string_view text, bool may_be_empty) {
  if (text.empty()) return may_be_empty;
  if (text.size() > 63 || !alphanumeric(text.front()) || !alphanumeric(text.back())) return false;
  return std::ranges::all_of(
      text, [](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_qualified_name(std::string_view text) {
  std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_label(text, false);
  return is_name(text.substr(0, slash)) && is_label(text.substr(slash + 1), false);
}

class Rules {
public:
  Rules(const Resource& resource, const Json& object, const Json* before)
      : resource_(resource), object_(object), before_(before) {}

  std::vector<std::string> check() {
    metadata();
    const std::string& plural = resource_.type.plural;
    if (resource_.custom) return std::move(errors_);
    if (plural == "pods") pod();
    if (plural == "events") event();
    if (plural == "leases") lease();
    if (plural == "daemonsets" || plural == "deployments" || plural == "replicasets") workload();
    if (plural == "resourceclaims") claim();
    if (plural == "resourceclaimtemplates") immutable("spec");
    if (plural == "jobs") immutable("spec/template");
    if (plural == "resourceslices")
      for (std::string_view field : {"spec/driver", "spec/nodeName", "spec/pool/name"})
        immutable(field);
    return std::move(errors_);
  }

private:
  void say(std::string_view path, std::string_view message) {
    std::string dotted(path);
    std::ranges::replace(dotted, '/', '.');
    errors_.push_back(fmt::format("{}: {}", dotted, message));
  }
  void immutable(std::string_view path) {
    if (!before_) return;
    const Json* now = find(object_, path);
    const Json* then = find(*before_, path);
    if ((now == nullptr) != (then == nullptr) || (now && *now != *then))
      say(path, "Invalid value: \"object\": field is immutable");
  }

  void metadata() {
    std::string_view name = text_or_empty(object_, "metadata/name");
    bool path_segment = resource_.type.group == "rbac.authorization.k8s.io";
    bool fine = path_segment ? name.find_first_of("/%") == std::string_view::npos && name != "." &&
                                   name != ".." && !name.empty()
                             : is_name(name);
    if (resource_.type.plural == "namespaces") fine = is_name(name) && name.size() <= 63;
    if (!fine)
      say("metadata/name",
          fmt::format("Invalid value: \"{}\": a lowercase RFC 1123 subdomain must consist of lower "
                      "case alphanumeric characters, '-' or '.', and must start and end with an "
                      "alphanumeric character",
                      name));
    for (const auto& [key, value] : object_or_empty(object_, "metadata/labels")) {
      if (!is_qualified_name(key))
        say("metadata/labels", fmt::format("Invalid value: \"{}\": name part must consist of "
                                           "alphanumeric characters, '-', '_' or '.'",
                                           std::string_view(key)));
      if (!value.is_string() || !is_label(value.get_string(), true))
        say("metadata/labels", fmt::format("Invalid value: {}: a valid label must be an empty "
                                           "string or consist of alphanumeric characters, '-', "
                                           "'_' or '.', at most 63 characters",
                                           to_text(value)));
    }
    for (const Json& finalizer : array_or_empty(object_, "metadata/finalizers"))
      if (!finalizer.is_string() || !is_qualified_name(finalizer.get_string()))
        say("metadata/finalizers",
            fmt::format("Invalid value: {}: name is not qualified", to_text(finalizer)));
    for (const Json& owner : array_or_empty(object_, "metadata/ownerReferences"))
      for (std::string_view field : {"apiVersion", "kind", "name", "uid"})
        if (text_or_empty(owner, field).empty())
          say("metadata/ownerReferences",
              fmt::format("Invalid value: \"\": {} must not be empty", field));
    new_finalizers();
  }

  void new_finalizers() {
    if (!before_ || !find(*before_, "metadata/deletionTimestamp")) return;
    const JsonArray& old = array_or_empty(*before_, "metadata/finalizers");
    for (const Json& finalizer : array_or_empty(object_, "metadata/finalizers"))
      if (std::ranges::find(old, finalizer) == old.end())
        say("metadata/finalizers",
            fmt::format("Forbidden: no new finalizers can be added if the object is being "
                        "deleted, found new finalizers []string{{{}}}",
                        to_text(finalizer)));
  }

  // The part of a pod's spec that never changes.
  static Json fixed_part(const Json& pod) {
    JsonObject spec = object_or_empty(pod, "spec");
    for (std::string_view field : {"activeDeadlineSeconds", "tolerations", "schedulingGates",
                                   "terminationGracePeriodSeconds", "nodeName"})
      spec.erase(field);
    for (std::string_view list : {"containers", "initContainers"})
      if (Json* containers = spec.if_contains(list); containers && containers->is_array())
        for (Json& container : containers->get_array())
          if (container.is_object()) container.get_object().erase("image");
    spec.erase("ephemeralContainers");
    return spec;
  }

  void pod() {
    const JsonArray& containers = array_or_empty(object_, "spec/containers");
    if (containers.empty()) say("spec/containers", "Required value");
    for (std::size_t i = 0; i < containers.size(); ++i)
      for (std::string_view field : {"name", "image"})
        if (text_or_empty(containers[i], field).empty())
          say(fmt::format("spec/containers[{}]/{}", i, field), "Required value");
    for (const Json& claim : array_or_empty(object_, "spec/resourceClaims")) {
      bool by_name = get(claim, "resourceClaimName");
      bool by_template = get(claim, "resourceClaimTemplateName");
      if (by_name == by_template)
        say("spec/resourceClaims",
            "Invalid value: must specify one of: `resourceClaimName`, "
            "`resourceClaimTemplateName`");
    }
    if (before_ && fixed_part(object_) != fixed_part(*before_))
      say("spec",
          "Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,"
          "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
          "tolerations),`spec.terminationGracePeriodSeconds`");
  }

  void event() {
    std::string_view space = text_or_empty(object_, "metadata/namespace");
    std::string_view about = text_or_empty(object_, "involvedObject/namespace");
    if (about.empty() ? space != "default" : about != space)
      say("involvedObject/namespace",
          fmt::format("Invalid value: \"{}\": does not match event.namespace", about));
  }

  void lease() {
    if (const Json* seconds = find(object_, "spec/leaseDurationSeconds");
        seconds && int_or(object_, "spec/leaseDurationSeconds", 0) <= 0)
      say("spec/leaseDurationSeconds", "Invalid value: must be greater than 0");
    if (int_or(object_, "spec/leaseTransitions", 0) < 0)
      say("spec/leaseTransitions", "Invalid value: must be greater than or equal to 0");
  }

  void workload() {
    const Json* selector = find(object_, "spec/selector");
    if (!selector) return say("spec/selector", "Required value");
    const JsonObject& labels = object_or_empty(object_, "spec/template/metadata/labels");
    Selector selects = selector_of(*selector);
    if (selects.empty() || !selects.matches_labels(labels))
      say("spec/template/metadata/labels",
          fmt::format("Invalid value: {}: `selector` does not match template `labels`",
                      to_text(Json(labels))));
    immutable("spec/selector");
  }

  void claim() {
    immutable("spec");
    if (array_or_empty(object_, "status/reservedFor").size() > 256)
      say("status/reservedFor", "Too many: must have at most 256 items");
    const Json* then = before_ ? find(*before_, "status/allocation") : nullptr;
    const Json* now = find(object_, "status/allocation");
    if (then && now && *then != *now)
      say("status/allocation", "Invalid value: \"object\": field is immutable");
  }

  const Resource& resource_;
  const Json& object_;
  const Json* before_;
  std::vector<std::string> errors_;
};

void copy_field(std::string_view field, const Json& from, Json& to) {
  const Json* value = get(from, field);
  if (value)
    to.get_object()[field] = *value;
  else
    to.get_object().erase(field);
}

}  // namespace

void keep_foreign_parts(const Resource& resource, std::string_view subresource, const Json& before,
                        Json& object) {
  Json& metadata = object.get_object()["metadata"];
  if (!metadata.is_object()) metadata = JsonObject{};
  const Json& old = *get(before, "metadata");
  for (std::string_view field : {"uid", "creationTimestamp", "deletionTimestamp", "generateName",
                                 "deletionGracePeriodSeconds", "generation", "namespace", "name"})
    copy_field(field, old, metadata);
  metadata.get_object().erase("managedFields");
  metadata.get_object().erase("selfLink");
  if (!resource.has_status) return;
  if (subresource != "status") return copy_field("status", before, object);

  Json status = get(object, "status") ? *get(object, "status") : Json();
  std::string version(text_or_empty(object, "metadata/resourceVersion"));
  JsonObject changed_metadata = metadata.get_object();
  object = before;
  // Built-in kinds let labels, annotations and the like through; custom resources do not.
  if (!resource.custom) object.get_object()["metadata"] = std::move(changed_metadata);
  metadata_of(object)["resourceVersion"] = version;
  if (status.is_null())
    object.get_object().erase("status");
  else
    object.get_object()["status"] = std::move(status);
}

bool desired_state_differs(const Resource& resource, const Json& before, const Json& after) {
  auto desired = [&](const Json& object) {
    JsonObject part = object.get_object();
    part.erase("metadata");
    if (resource.has_status) part.erase("status");
    return part;
  };
  return desired(before) != desired(after);
}

std::vector<std::string> rule_errors(const Resource& resource, const Json& object,
                                     const Json* before) {
  return Rules(resource, object, before).check();
}

std::string name_suffix(std::uint64_t random) {
  static constexpr std::string_view letters = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i, random /= letters.size()) suffix += letters[random % letters.size()];
  return suffix;
}

}  // namespace nvdra::sandbox
