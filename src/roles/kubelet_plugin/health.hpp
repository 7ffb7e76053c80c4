// What the plugin says on /healthz, /readyz and /metrics.
#pragma once

#include "dra/server.hpp"
#include "dra/slices.hpp"
#include "k8s/http_endpoint.hpp"
#include "roles/common/main_loop.hpp"
#include "roles/kubelet_plugin/config.hpp"
#include "roles/kubelet_plugin/driver.hpp"

namespace nvdra::roles::kubelet_plugin {

// The parts that can be in trouble; they outlive the endpoint.
struct Health {
  const Domains* domains;
  const NodeFacts* facts;
  const dra::Server* server;
  const dra::SlicePublisher* slices;
};

// 200 "ok", or 503 with one line per trouble.
k8s::HttpReply readiness(const Health& health);

// Listens on config.http_endpoint. `metrics` and what `health` names outlive it.
Result<k8s::HttpEndpoint> make_endpoint(World world, const Config& config, Metrics& metrics,
                                        Health health);

}  // namespace nvdra::roles::kubelet_plugin
