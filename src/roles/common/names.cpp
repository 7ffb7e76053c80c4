#include "roles/common/names.hpp"

namespace nvdra::roles {

std::string daemon_object_name(const DomainUid& domain) {
  return "computedomain-daemon-" + domain.value;
}

std::string clique_object_name(const DomainUid& domain, const CliqueId& clique) {
  return domain.value + "." + clique.value;
}

std::string nvidia_api_version() {
  return std::string(api_group) + "/" + std::string(api_version);
}

k8s::ResourceType compute_domains() {
  return {std::string(api_group), std::string(api_version), "computedomains", "ComputeDomain",
          true};
}

k8s::ResourceType cliques() {
  return {std::string(api_group), std::string(api_version), "computedomaincliques",
          "ComputeDomainClique", true};
}

k8s::ResourceType nodes() {
  return {"", "v1", "nodes", "Node", false};
}
k8s::ResourceType pods() {
  return {"", "v1", "pods", "Pod", true};
}
k8s::ResourceType daemon_sets() {
  return {"apps", "v1", "daemonsets", "DaemonSet", true};
}

k8s::ResourceType claims(const std::string& version) {
  return {"resource.k8s.io", version, "resourceclaims", "ResourceClaim", true};
}

k8s::ResourceType claim_templates(const std::string& version) {
  return {"resource.k8s.io", version, "resourceclaimtemplates", "ResourceClaimTemplate", true};
}

k8s::ResourceType slices(const std::string& version) {
  return {"resource.k8s.io", version, "resourceslices", "ResourceSlice", false};
}

}  // namespace nvdra::roles
