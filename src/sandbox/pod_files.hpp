// The files that a kubelet puts into every container: /etc/hosts (its own, writable in place),
// /etc/hostname, /etc/resolv.conf, and the service account's folder.
#pragma once

#include "base/json.hpp"
#include "cdi/spec.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

// Where pods find the API server; host "" = they do not.
struct PodApi {
  std::string host = {};
  std::uint16_t port = 0;
  std::string authority = {};  // PEM
};

// Pure: what stands in a pod's /etc/hosts, as a kubelet writes it.
std::string hosts_text(std::string_view address, std::string_view host_name);
// Pure: /etc/resolv.conf for a pod, its dnsConfig's options included. There is no name server in
// the sandbox: names are asked at an address where nobody answers.
std::string resolver_text(const Json& pod);

// Writes them into `folder` (anew for every start of a container, as a kubelet does) and says where
// they belong.
Result<std::vector<cdi::Mount>> put_pod_files(const std::string& folder, const Json& pod,
                                              const std::string& address, const PodApi& api);

// The container's volumeMounts: emptyDir in `folder` (one for all containers of the pod) and
// hostPath, which is this machine's. The error names a volume of a kind that the sandbox does not
// have.
Result<std::vector<cdi::Mount>> put_volumes(const std::string& folder, const Json& pod,
                                            const Json& container);

// "KUBERNETES_SERVICE_HOST=…" and its companions.
std::vector<std::string> api_environment(const PodApi& api);

}  // namespace nvdra::sandbox
