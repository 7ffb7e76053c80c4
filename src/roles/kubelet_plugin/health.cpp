#include "roles/kubelet_plugin/health.hpp"

namespace nvdra::roles::kubelet_plugin {

k8s::HttpReply readiness(const Health& health) {
  std::string text;
  for (const std::string& trouble :
       {health.server->trouble(), health.domains->trouble(), health.facts->trouble(),
        health.facts->refusal(), health.slices->trouble()})
    if (!trouble.empty()) text += "\n" + trouble;
  if (text.empty()) return {200, "text/plain; charset=utf-8", "ok\n"};
  return {503, "text/plain; charset=utf-8", "not ready:" + text + "\n"};
}

}  // namespace nvdra::roles::kubelet_plugin
