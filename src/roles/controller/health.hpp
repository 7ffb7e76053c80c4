// What the controller says on /healthz, /readyz and /metrics (W-C12, W-M1, W-M2). Everything is
// derived at the moment of the question; nothing is counted twice or forgotten.
#pragma once

#include "k8s/http_endpoint.hpp"
#include "k8s/lease.hpp"
#include "k8s/reconcile_loop.hpp"
#include "roles/controller/caches.hpp"

#include <string>

namespace nvdra::roles::controller {

// What the process is doing; the pointers are set while the parts live.
struct Status {
  std::string trouble = "starting";  // before the caches exist: what is missing; "" = nothing
  const k8s::LeaderElection* election = nullptr;
  const Caches* caches = nullptr;
  const k8s::ReconcileLoop* loop = nullptr;
  const k8s::Client* client = nullptr;
};

// 200 when this process does its part: it leads with caches up to date, or it stands by. 503 with
// one sentence per cause otherwise.
k8s::HttpReply readiness(const Status& status);

// Prometheus text.
std::string metrics_text(const Status& status);

}  // namespace nvdra::roles::controller
