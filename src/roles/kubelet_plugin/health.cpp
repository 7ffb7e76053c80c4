#include "roles/kubelet_plugin/health.hpp"

#include "base/try.hpp"

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

Result<k8s::HttpEndpoint> make_endpoint(World world, const Config& config, Metrics& metrics,
                                        Health health) {
  TRY(k8s::HttpEndpoint endpoint,
      k8s::HttpEndpoint::listen(world.loop.get_executor(), world.time, config.http_endpoint,
                                "--http-endpoint"));
  endpoint.on_get("/healthz",
                  [](std::string_view) { return k8s::HttpReply{200, "text/plain", "ok\n"}; });
  endpoint.on_get("/readyz", [health](std::string_view) { return readiness(health); });
  if (!config.metrics_path.empty())
    endpoint.on_get(config.metrics_path, [&metrics](std::string_view) {
      return k8s::HttpReply{200, "text/plain; version=0.0.4; charset=utf-8",
                            metrics.registry().text()};
    });
  return endpoint;
}

}  // namespace nvdra::roles::kubelet_plugin
