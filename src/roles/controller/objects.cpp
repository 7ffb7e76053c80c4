#include "roles/controller/objects.hpp"

#include "roles/common/names.hpp"

#include <algorithm>

namespace nvdra::roles::controller {
namespace {

Json request(std::string_view name, std::string_view device_class, const std::string& version) {
  if (version == "v1beta1") return {{"name", name}, {"deviceClassName", device_class}};
  return {{"name", name}, {"exactly", {{"deviceClassName", device_class}}}};
}

Json metadata(const std::string& space, const std::string& name, const DomainUid& uid,
              std::string_view target) {
  return {{"namespace", space},
          {"name", name},
          {"finalizers", JsonArray{std::string(finalizer)}},
          {"labels", {{domain_label, uid.value}, {target_label, target}}},
          {"annotations", {{made_as_annotation, space + "/" + name}}}};
}

}  // namespace

Domain read_domain(const k8s::Object& object) {
  const Json& json = object.json();
  Domain domain;
  domain.key = object.key();
  domain.uid = DomainUid(std::string(object.uid()));
  domain.generation = object.generation();
  domain.num_nodes = int_or(json, "spec/numNodes", 0);
  domain.template_name = text_or_empty(json, "spec/channel/resourceClaimTemplate/name");
  domain.allocation_mode = text_or_empty(json, "spec/channel/allocationMode");
  if (domain.allocation_mode.empty()) domain.allocation_mode = "Single";
  domain.deleting = object.deleting();
  return domain;
}

Json workload_template(const Domain& domain, ImexMode mode, const std::string& resource_version) {
  std::string allocation = mode == ImexMode::host_managed ? "Single" : domain.allocation_mode;
  Json parameters = {{"apiVersion", nvidia_api_version()},
                     {"kind", channel_config_kind},
                     {"domainID", domain.uid.value},
                     {"allocationMode", allocation}};
  Json config = {{"requests", JsonArray{channel_request}},
                 {"opaque", {{"driver", driver_name}, {"parameters", parameters}}}};
  Json devices = {
      {"requests", JsonArray{request(channel_request, channel_class, resource_version)}},
      {"config", JsonArray{config}}};
  return {
      {"apiVersion", "resource.k8s.io/" + resource_version},
      {"kind", "ResourceClaimTemplate"},
      {"metadata", metadata(domain.key.space, domain.template_name, domain.uid, target_workload)},
      {"spec", {{"spec", {{"devices", devices}}}}}};
}

Json daemon_template(const DomainUid& uid, const std::string& space,
                     const std::string& resource_version) {
  Json parameters = {
      {"apiVersion", nvidia_api_version()}, {"kind", daemon_config_kind}, {"domainID", uid.value}};
  Json config = {{"requests", JsonArray{daemon_request}},
                 {"opaque", {{"driver", driver_name}, {"parameters", parameters}}}};
  Json devices = {{"requests", JsonArray{request(daemon_request, daemon_class, resource_version)}},
                  {"config", JsonArray{config}}};
  return {{"apiVersion", "resource.k8s.io/" + resource_version},
          {"kind", "ResourceClaimTemplate"},
          {"metadata", metadata(space, daemon_object_name(uid), uid, target_daemon)},
          {"spec", {{"spec", {{"devices", devices}}}}}};
}

bool contains(const Json& actual, const Json& wanted) {
  if (const JsonObject* fields = wanted.if_object()) {
    const JsonObject* found = actual.if_object();
    return found && std::ranges::all_of(*fields, [&](const auto& field) {
             const Json* value = found->if_contains(field.key());
             return value && contains(*value, field.value());
           });
  }
  if (const JsonArray* items = wanted.if_array()) {
    const JsonArray* found = actual.if_array();
    return found && std::ranges::equal(*found, *items, contains);
  }
  return actual == wanted;
}

bool made_for(const k8s::Object& object, const DomainUid& uid) {
  if (!object.label(domain_label) || object.label_text(domain_label) != uid.value) return false;
  if (!object.has_finalizer(finalizer) && !object.deleting()) return false;
  std::string_view made_as = object.annotation_text(made_as_annotation);
  if (!made_as.empty() && made_as != object.key().text()) return false;
  const JsonArray& configs = array_or_empty(object.json(), "spec/spec/devices/config");
  return std::ranges::any_of(configs, [&](const Json& config) {
    return text_or_empty(config, "opaque/driver") == driver_name &&
           text_or_empty(config, "opaque/parameters/domainID") == uid.value;
  });
}

bool is_workload_template(const k8s::Object& object, const Domain& domain) {
  return object.key() == k8s::ObjectKey{domain.key.space, domain.template_name};
}

bool is_daemon_template(const k8s::Object& object, const DomainUid& uid,
                        const std::vector<std::string>& spaces) {
  return object.name() == daemon_object_name(uid) && !is_target(object, target_workload) &&
         std::ranges::find(spaces, object.space()) != spaces.end();
}

bool is_target(const k8s::Object& object, std::string_view target) {
  return object.label_text(target_label) == target;
}

}  // namespace nvdra::roles::controller
