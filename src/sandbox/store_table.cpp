#include "sandbox/store_table.hpp"

#include <algorithm>
#include <iterator>

namespace nvdra::sandbox {
namespace {

constexpr bool namespaced = true;
constexpr bool cluster = false;

// What a row may have besides storage.
enum Trait : unsigned {
  plain = 0,
  status = 1,      // status subresource
  generation = 2,  // counts changes of the desired state
  guarded = 4,     // updates must name a resourceVersion
  review = 8,      // create only
};

struct Row {
  const char* group;
  const char* version;
  const char* plural;
  const char* kind;
  bool namespaced;
  unsigned traits;
  const char* short_names;  // separated by commas
  const char* fields;       // field selectors
};

constexpr const char* event_fields =
    "involvedObject.kind,involvedObject.namespace,involvedObject.name,involvedObject.uid,"
    "involvedObject.apiVersion,involvedObject.resourceVersion,involvedObject.fieldPath,reason,"
    "reportingComponent,source,type";
constexpr const char* pod_fields =
    "spec.nodeName,spec.restartPolicy,spec.schedulerName,spec.serviceAccountName,"
    "spec.hostNetwork,status.phase,status.podIP,status.nominatedNodeName";
constexpr unsigned workload = status | generation;

// clang-format off
constexpr Row rows[] = {
    {"", "v1", "namespaces",             "Namespace",             cluster,    status, "ns", "status.phase"},
    {"", "v1", "nodes",                  "Node",                  cluster,    status, "no", "spec.unschedulable"},
    {"", "v1", "pods",                   "Pod",                   namespaced, status | generation, "po", pod_fields},
    {"", "v1", "events",                 "Event",                 namespaced, plain,  "ev", event_fields},
    {"", "v1", "serviceaccounts",        "ServiceAccount",        namespaced, plain,  "sa", ""},
    {"", "v1", "services",               "Service",               namespaced, status, "svc", "spec.clusterIP,spec.type"},
    {"", "v1", "endpoints",              "Endpoints",             namespaced, plain,  "ep", ""},
    {"", "v1", "configmaps",             "ConfigMap",             namespaced, plain,  "cm", ""},
    {"", "v1", "secrets",                "Secret",                namespaced, plain,  "", "type"},
    {"", "v1", "podtemplates",           "PodTemplate",           namespaced, plain,  "", ""},
    {"", "v1", "limitranges",            "LimitRange",            namespaced, plain,  "limits", ""},
    {"", "v1", "resourcequotas",         "ResourceQuota",         namespaced, status, "quota", ""},
    {"", "v1", "replicationcontrollers", "ReplicationController", namespaced, workload, "rc", ""},
    {"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced, status, "pvc", ""},
    {"", "v1", "persistentvolumes",      "PersistentVolume",      cluster,    status, "pv", ""},
    {"apps", "v1", "daemonsets",          "DaemonSet",          namespaced, workload, "ds", ""},
    {"apps", "v1", "deployments",         "Deployment",         namespaced, workload, "deploy", ""},
    {"apps", "v1", "replicasets",         "ReplicaSet",         namespaced, workload, "rs", ""},
    {"apps", "v1", "statefulsets",        "StatefulSet",        namespaced, workload, "sts", ""},
    {"apps", "v1", "controllerrevisions", "ControllerRevision", namespaced, plain, "", ""},
    {"batch", "v1", "jobs",     "Job",     namespaced, workload, "", "status.successful"},
    {"batch", "v1", "cronjobs", "CronJob", namespaced, workload, "cj", ""},
    {"coordination.k8s.io", "v1", "leases", "Lease", namespaced, guarded, "", ""},
    {"resource.k8s.io", "v1", "resourceclaims",         "ResourceClaim",         namespaced, status, "", ""},
    {"resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced, plain, "", ""},
    {"resource.k8s.io", "v1", "resourceslices",         "ResourceSlice",         cluster, generation, "", "spec.driver,spec.nodeName"},
    {"resource.k8s.io", "v1", "deviceclasses",          "DeviceClass",           cluster, generation, "", ""},
    {"rbac.authorization.k8s.io", "v1", "roles",               "Role",               namespaced, plain, "", ""},
    {"rbac.authorization.k8s.io", "v1", "rolebindings",        "RoleBinding",        namespaced, plain, "", ""},
    {"rbac.authorization.k8s.io", "v1", "clusterroles",        "ClusterRole",        cluster, plain, "", ""},
    {"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", cluster, plain, "", ""},
    {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", cluster, workload, "crd,crds", ""},
    {"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",   "ValidatingWebhookConfiguration",   cluster, generation, "", ""},
    {"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",     "MutatingWebhookConfiguration",     cluster, generation, "", ""},
    {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",       "ValidatingAdmissionPolicy",        cluster, workload, "", ""},
    {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", cluster, generation, "", ""},
    {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", cluster, generation, "pc", ""},
    {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", namespaced, generation, "netpol", ""},
    {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced, workload, "pdb", ""},
    {"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", cluster, review, "", ""},
    {"authorization.k8s.io", "v1", "selfsubjectrulesreviews",  "SelfSubjectRulesReview",  cluster, review, "", ""},
    {"authorization.k8s.io", "v1", "subjectaccessreviews",     "SubjectAccessReview",     cluster, review, "", ""},
    {"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", cluster, review, "", ""},
    {"authentication.k8s.io", "v1", "tokenreviews",       "TokenReview",       cluster, review, "", ""},
};
// clang-format on

// What `kubectl get all` means.
constexpr std::string_view in_all[] = {"pods",        "services",     "daemonsets", "deployments",
                                       "replicasets", "statefulsets", "jobs",       "cronjobs"};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return parts;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

Resource from_row(const Row& row) {
  Resource resource{.type = {row.group, row.version, row.plural, row.kind, row.namespaced},
                    .singular = lower(row.kind),
                    .short_names = split(row.short_names),
                    .served = {row.version},
                    .fields = split(row.fields)};
  resource.has_status = row.traits & status;
  resource.has_generation = row.traits & generation;
  resource.needs_version = row.traits & guarded;
  resource.listed = !(row.traits & review);
  return resource;
}

}  // namespace

std::vector<Resource> built_in_resources(const std::vector<std::string>& resource_versions) {
  std::vector<Resource> resources;
  for (const Row& row : rows) {
    Resource resource = from_row(row);
    if (resource.type.group == "resource.k8s.io") resource.served = resource_versions;
    if (std::ranges::find(in_all, resource.type.plural) != std::end(in_all))
      resource.categories = {"all"};
    resources.push_back(std::move(resource));
  }
  return resources;
}

}  // namespace nvdra::sandbox
