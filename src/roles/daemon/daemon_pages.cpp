// What a daemon answers on its status socket.
#include "base/metrics.hpp"
#include "roles/daemon/daemon.hpp"

namespace nvdra::roles::daemon {

k8s::HttpReply Daemon::page(std::string_view path) const {
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics()};
  if (path == "/healthz") return {.body = "ok\n"};
  if (path != "/check" && path != "/readyz") return {.status = 404, .body = "404 page not found\n"};
  const Verdict now = verdict();
  if (now.ready) return {.body = now.state + "\n"};
  return {.status = 503, .body = now.state + ": " + now.reason + "\n"};
}

std::string Daemon::metrics() const {
  Metrics metrics;
  const Verdict now = verdict();
  metrics
      .gauge("nvdra_imex_ready", "1 while this member of its domain is ready, by state.",
             {{"state", now.state}})
      .set(now.ready ? 1 : 0);
  const auto count = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    metrics.counter(name, help).add(static_cast<double>(value));
  };
  count("nvdra_imex_starts_total", "Starts of nvidia-imex.", starts_);
  count("nvdra_imex_crashes_total", "Ends of nvidia-imex that nobody wanted.", crashes_);
  count("nvdra_imex_refreshes_total", "Signals to nvidia-imex to resolve its peers again.",
        refresher_.sent());
  count("nvdra_imex_queries_total", "Questions to nvidia-imex-ctl.", state_.questions());
  count("nvdra_imex_mismatches_total", "Times a peer had another nodes file.", notices_);
  count("nvdra_membership_refusals_total", "Writes of the list of members that came too late.",
        membership_.refused());
  client_.add_counts(metrics);
  return metrics.text();
}

}  // namespace nvdra::roles::daemon
