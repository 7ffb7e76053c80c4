#include "sandbox/demo_manifests.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {

const std::string_view compute_domain_manifest =
    R"(apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata:
  name: my-compute-domain
spec:
  numNodes: 0
  channel:
    resourceClaimTemplate:
      name: imex-channel-0
)";

const std::string_view workload_manifest =
    R"(apiVersion: v1
kind: Pod
metadata:
  name: my-workload
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - key: nvidia.com/gpu.clique
            operator: Exists
  containers:
  - name: app
    image: ubuntu:22.04
    command: ["bash", "-c"]
    args:
    - |
      set -eu
      test -c /dev/nvidia-caps-imex-channels/channel0
      echo "IMEX channel0 is available"
      ls -la /dev/nvidia-caps-imex-channels
      sleep 9999
    resources:
      claims:
      - name: imex-channel-0
  resourceClaims:
  - name: imex-channel-0
    resourceClaimTemplateName: imex-channel-0
)";

std::string workload_on(std::string_view node) {
  constexpr std::string_view before = "            operator: Exists\n";
  std::string text(workload_manifest);
  text.insert(text.find(before) + before.size(),
              fmt::format("          - key: kubernetes.io/hostname\n"
                          "            operator: In\n"
                          "            values:\n"
                          "            - {}\n",
                          node));
  return text;
}

std::string workload_named(std::string_view name) {
  constexpr std::string_view own = "my-workload";
  std::string text(workload_manifest);
  return text.replace(text.find(own), own.size(), name);
}

}  // namespace nvdra::sandbox
