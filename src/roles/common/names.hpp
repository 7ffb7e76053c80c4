// Every name that two parts of the product share is made here (cluster-side.md 2, node-side.md 1;
// all of them [KEEP]: other versions and other programs rely on them).
#pragma once

#include "base/ids.hpp"
#include "k8s/object.hpp"

#include <string>
#include <string_view>

namespace nvdra::roles {

inline constexpr std::string_view api_group = "resource.nvidia.com";
inline constexpr std::string_view api_version = "v1beta1";
inline constexpr std::string_view driver_name = "compute-domain.nvidia.com";

// The label on nodes, DaemonSets, templates, cliques and daemon pods; also the finalizer.
inline constexpr std::string_view domain_label = "resource.nvidia.com/computeDomain";
inline constexpr std::string_view finalizer = domain_label;
inline constexpr std::string_view clique_label = "resource.nvidia.com/computeDomain.cliqueID";
inline constexpr std::string_view target_label = "resource.nvidia.com/computeDomainTarget";
inline constexpr std::string_view target_daemon = "Daemon";
inline constexpr std::string_view target_workload = "Workload";
// Annotation of a daemon pod: the state word of its nvidia-imex while that is not READY. The daemon
// may write it; the controller repeats it in the ComputeDomain's conditions.
inline constexpr std::string_view imex_state_annotation =
    "resource.nvidia.com/computeDomain.imexState";
// Annotation of a daemon pod, written by its daemon at start: the address that it joins with. The
// kubelet tells the pod's address and that its container runs much later.
inline constexpr std::string_view address_annotation = "resource.nvidia.com/computeDomain.address";
inline constexpr std::string_view gpu_clique_label = "nvidia.com/gpu.clique";

inline constexpr std::string_view daemon_class = "compute-domain-daemon.nvidia.com";
inline constexpr std::string_view channel_class = "compute-domain-default-channel.nvidia.com";
inline constexpr std::string_view daemon_request = "daemon";
inline constexpr std::string_view channel_request = "channel";
inline constexpr std::string_view channel_config_kind = "ComputeDomainChannelConfig";
inline constexpr std::string_view daemon_config_kind = "ComputeDomainDaemonConfig";
inline constexpr std::string_view daemon_service_account = "compute-domain-daemon-service-account";
inline constexpr std::string_view daemon_container = "compute-domain-daemon";

inline constexpr std::string_view default_host_socket = "/etc/nvidia-imex/imex_ctrl.sock";

// DaemonSet and daemon template: "computedomain-daemon-<uid>".
std::string daemon_object_name(const DomainUid& domain);
// Clique object: "<uid>.<clique>".
std::string clique_object_name(const DomainUid& domain, const CliqueId& clique);
// "resource.nvidia.com/v1beta1"
std::string nvidia_api_version();

k8s::ResourceType compute_domains();
k8s::ResourceType cliques();
k8s::ResourceType nodes();
k8s::ResourceType pods();
k8s::ResourceType daemon_sets();
// `version` of resource.k8s.io as discovered: "v1", "v1beta2" or "v1beta1".
k8s::ResourceType claims(const std::string& version);
k8s::ResourceType claim_templates(const std::string& version);
k8s::ResourceType slices(const std::string& version);

}  // namespace nvdra::roles
