#include "sandbox/store_defaults.hpp"

#include "sandbox/store_item.hpp"

#include <algorithm>

namespace nvdra::sandbox {
namespace {

Json& set_default(JsonObject& object, std::string_view key, Json value) {
  Json* member = object.if_contains(key);
  return member ? *member : object[key] = std::move(value);
}

JsonObject* object_in(JsonObject& object, std::string_view key) {
  Json* member = object.if_contains(key);
  return member ? member->if_object() : nullptr;
}

JsonArray* list_in(JsonObject& object, std::string_view key) {
  Json* member = object.if_contains(key);
  return member ? member->if_array() : nullptr;
}

// The object under `key`, made if it is missing.
JsonObject& ensure_object(JsonObject& object, std::string_view key) {
  Json& member = object[key];
  if (!member.is_object()) member = JsonObject{};
  return member.get_object();
}

bool untagged_or_latest(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return false;
  std::size_t colon = image.rfind(':');
  std::size_t slash = image.rfind('/');
  bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return !tagged || image.substr(colon + 1) == "latest";
}

void probe_defaults(JsonObject& container, std::string_view name) {
  JsonObject* probe = object_in(container, name);
  if (!probe) return;
  set_default(*probe, "timeoutSeconds", 1);
  set_default(*probe, "periodSeconds", 10);
  set_default(*probe, "successThreshold", 1);
  set_default(*probe, "failureThreshold", 3);
}

void container_defaults(JsonObject& container) {
  std::string image(text_or_empty(Json(container), "image"));
  set_default(container, "terminationMessagePath", "/dev/termination-log");
  set_default(container, "terminationMessagePolicy", "File");
  set_default(container, "imagePullPolicy", untagged_or_latest(image) ? "Always" : "IfNotPresent");
  set_default(container, "resources", JsonObject{});
  for (std::string_view probe : {"startupProbe", "livenessProbe", "readinessProbe"})
    probe_defaults(container, probe);
  if (JsonArray* ports = list_in(container, "ports"))
    for (Json& port : *ports)
      if (JsonObject* object = port.if_object()) set_default(*object, "protocol", "TCP");
  if (JsonArray* variables = list_in(container, "env"))
    for (Json& variable : *variables) {
      JsonObject* object = variable.if_object();
      JsonObject* from = object ? object_in(*object, "valueFrom") : nullptr;
      JsonObject* field = from ? object_in(*from, "fieldRef") : nullptr;
      if (field) set_default(*field, "apiVersion", "v1");
    }
}

void volume_defaults(JsonObject& volume) {
  if (JsonObject* path = object_in(volume, "hostPath")) set_default(*path, "type", "");
  for (std::string_view kind : {"configMap", "secret", "projected", "downwardAPI"})
    if (JsonObject* source = object_in(volume, kind)) set_default(*source, "defaultMode", 420);
}

void pod_spec_defaults(JsonObject& spec) {
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "terminationGracePeriodSeconds", 30);
  set_default(spec, "dnsPolicy", "ClusterFirst");
  set_default(spec, "securityContext", JsonObject{});
  set_default(spec, "schedulerName", "default-scheduler");
  if (const Json* account = spec.if_contains("serviceAccountName"))
    set_default(spec, "serviceAccount", *account);
  for (std::string_view list : {"containers", "initContainers"})
    if (JsonArray* containers = list_in(spec, list))
      for (Json& container : *containers)
        if (JsonObject* object = container.if_object()) container_defaults(*object);
  if (JsonArray* volumes = list_in(spec, "volumes"))
    for (Json& volume : *volumes)
      if (JsonObject* object = volume.if_object()) volume_defaults(*object);
}

void toleration_default(JsonArray& tolerations, std::string_view key) {
  bool covered = std::ranges::any_of(tolerations, [&](const Json& toleration) {
    std::string_view effect = text_or_empty(toleration, "effect");
    std::string_view name = text_or_empty(toleration, "key");
    return (name == key || name.empty()) && (effect == "NoExecute" || effect.empty());
  });
  if (covered) return;
  tolerations.push_back(JsonObject{
      {"key", key}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
}

void pod_defaults(JsonObject& spec) {
  set_default(spec, "serviceAccountName", "default");
  pod_spec_defaults(spec);
  set_default(spec, "enableServiceLinks", true);
  set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
  set_default(spec, "priority", 0);
  Json& tolerations = set_default(spec, "tolerations", JsonArray{});
  if (!tolerations.is_array()) return;
  toleration_default(tolerations.get_array(), "node.kubernetes.io/not-ready");
  toleration_default(tolerations.get_array(), "node.kubernetes.io/unreachable");
}

void template_defaults(JsonObject& spec) {
  JsonObject& pod = ensure_object(spec, "template");
  pod_spec_defaults(ensure_object(pod, "spec"));
  set_default(pod, "metadata", JsonObject{});
}

void daemon_set_defaults(JsonObject& spec) {
  template_defaults(spec);
  set_default(spec, "revisionHistoryLimit", 10);
  JsonObject& strategy = ensure_object(spec, "updateStrategy");
  if (set_default(strategy, "type", "RollingUpdate") != "RollingUpdate") return;
  JsonObject& rolling = ensure_object(strategy, "rollingUpdate");
  set_default(rolling, "maxUnavailable", 1);
  set_default(rolling, "maxSurge", 0);
}

void deployment_defaults(JsonObject& spec) {
  template_defaults(spec);
  set_default(spec, "replicas", 1);
  set_default(spec, "revisionHistoryLimit", 10);
  set_default(spec, "progressDeadlineSeconds", 600);
  JsonObject& strategy = ensure_object(spec, "strategy");
  if (set_default(strategy, "type", "RollingUpdate") != "RollingUpdate") return;
  JsonObject& rolling = ensure_object(strategy, "rollingUpdate");
  set_default(rolling, "maxUnavailable", "25%");
  set_default(rolling, "maxSurge", "25%");
}

void job_defaults(JsonObject& spec) {
  template_defaults(spec);
  set_default(spec, "backoffLimit", 6);
  set_default(spec, "completionMode", "NonIndexed");
  set_default(spec, "suspend", false);
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec["completions"] = 1;
  set_default(spec, "parallelism", 1);
}

void claim_defaults(JsonObject& spec) {
  JsonObject* devices = object_in(spec, "devices");
  JsonArray* requests = devices ? list_in(*devices, "requests") : nullptr;
  if (!requests) return;
  for (Json& request : *requests) {
    JsonObject* object = request.if_object();
    JsonObject* exactly = object ? object_in(*object, "exactly") : nullptr;
    if (!exactly) continue;
    if (set_default(*exactly, "allocationMode", "ExactCount") == "ExactCount")
      set_default(*exactly, "count", 1);
  }
}

}  // namespace

void fill_built_in_defaults(const Resource& resource, Json& object) {
  const std::string& plural = resource.type.plural;
  if (resource.custom || !object.is_object()) return;
  JsonObject* spec = object_in(object.get_object(), "spec");
  if (plural == "namespaces") {
    JsonObject& made = ensure_object(object.get_object(), "spec");
    set_default(made, "finalizers", JsonArray{"kubernetes"});
    JsonObject& labels = ensure_object(metadata_of(object), "labels");
    labels["kubernetes.io/metadata.name"] = text_or_empty(object, "metadata/name");
  }
  if (!spec) return;
  if (plural == "pods") pod_defaults(*spec);
  if (plural == "daemonsets") daemon_set_defaults(*spec);
  if (plural == "deployments") deployment_defaults(*spec);
  if (plural == "replicasets" || plural == "statefulsets") {
    template_defaults(*spec);
    set_default(*spec, "replicas", 1);
  }
  if (plural == "jobs") job_defaults(*spec);
  if (plural == "resourceclaims") claim_defaults(*spec);
  if (plural == "resourceclaimtemplates") {
    set_default(*spec, "metadata", JsonObject{});
    if (JsonObject* inner = object_in(*spec, "spec")) claim_defaults(*inner);
  }
}

void begin_status(const Resource& resource, Json& object) {
  if (!resource.has_status || resource.type.plural == "nodes") return;
  JsonObject& root = object.get_object();
  root.erase("status");
  const std::string& plural = resource.type.plural;
  if (resource.custom) return;
  if (plural == "pods")
    root["status"] = JsonObject{{"phase", "Pending"}, {"qosClass", "BestEffort"}};
  if (plural == "namespaces") root["status"] = JsonObject{{"phase", "Active"}};
  if (plural == "daemonsets")
    root["status"] = JsonObject{{"currentNumberScheduled", 0},
                                {"numberMisscheduled", 0},
                                {"desiredNumberScheduled", 0},
                                {"numberReady", 0}};
  if (plural == "resourceclaims" || plural == "deployments" || plural == "jobs")
    root["status"] = JsonObject{};
  if (plural == "replicasets") root["status"] = JsonObject{{"replicas", 0}};
}

}  // namespace nvdra::sandbox
