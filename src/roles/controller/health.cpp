#include "roles/controller/health.hpp"

#include "base/metrics.hpp"

#include <map>

namespace nvdra::roles::controller {
namespace {

double count_status(const Caches& caches, std::string_view wanted) {
  double count = 0;
  for (const k8s::ObjectPtr& domain : caches.domains().all()) {
    std::string_view status = text_or_empty(domain->json(), "status/status");
    if (status.empty()) status = "NotReady";
    if (status == wanted) ++count;
  }
  return count;
}

k8s::HttpReply reply(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text) + "\n"};
}

}  // namespace

k8s::HttpReply readiness(const Status& status) {
  bool stands_by = status.election && !status.election->leading();
  if (stands_by && status.trouble.empty())
    return reply(200,
                 "ok: standing by, the leader is " +
                     (status.election->holder().empty() ? "not known" : status.election->holder()));
  if (!status.caches) return reply(503, "not ready: " + status.trouble);
  std::vector<std::string> troubles = status.caches->troubles();
  if (!troubles.empty()) {
    std::string text = status.caches->ready()
                           ? "not ready:"
                           : "not ready, and no ComputeDomain is worked on until this is cured:";
    for (const std::string& trouble : troubles) text += "\n" + trouble;
    return reply(503, text);
  }
  if (!status.caches->ready()) return reply(503, "not ready: the caches are being filled");
  return reply(200, "ok");
}

std::string metrics_text(const Status& status) {
  Metrics metrics;
  constexpr std::string_view name = "nvidia_dra_compute_domain_info";
  constexpr std::string_view help = "[ALPHA] Number of ComputeDomains by global status.";
  for (const char* state : {"Ready", "NotReady"})
    metrics.gauge(name, help, {{"status", state}})
        .set(status.caches ? count_status(*status.caches, state) : 0);
  metrics.gauge("nvdra_leader", "1 while this process does the controller's work.")
      .set(status.caches ? 1 : 0);
  if (status.loop) {
    k8s::ReconcileLoop::Numbers numbers = status.loop->numbers();
    metrics.counter("nvdra_reconciles_total", "Reconciles, by result.", {{"result", "success"}})
        .add(static_cast<double>(numbers.done));
    metrics.counter("nvdra_reconciles_total", "Reconciles, by result.", {{"result", "error"}})
        .add(static_cast<double>(numbers.failed));
    metrics
        .gauge("workqueue_depth", "ComputeDomains waiting to be reconciled.",
               {{"name", "computedomains"}})
        .set(static_cast<double>(numbers.waiting));
  }
  if (status.client) status.client->add_counts(metrics);
  return metrics.text();
}

}  // namespace nvdra::roles::controller
