#include "roles/controller/run.hpp"

#include "base/common_flags.hpp"
#include "base/ids.hpp"
#include "base/log.hpp"
#include "base/resident.hpp"
#include "base/try.hpp"
#include "base/within.hpp"
#include "k8s/config.hpp"
#include "k8s/http_transport.hpp"
#include "roles/common/command_line.hpp"
#include "roles/common/main_loop.hpp"
#include "roles/common/names.hpp"
#include "roles/controller/burst.hpp"
#include "roles/controller/config.hpp"
#include "roles/controller/health.hpp"
#include "roles/controller/reconciler.hpp"

#include <optional>

namespace nvdra::roles::controller {
namespace {

// Domains worked on at once. Each has at most one request in flight.
constexpr int workers = 32;
constexpr Duration look_again = 5s;

// What the server does not offer, or ""; `version` becomes the version of resource.k8s.io.
Async<std::string> missing_api(k8s::Client& client, ImexMode mode, std::string& version) {
  Result<std::string> found = co_await k8s::discover_resource_version(client);
  if (!found) co_return found.error().text();
  version = *std::move(found);
  for (const k8s::ResourceType& type : {compute_domains(), cliques()}) {
    if (type == cliques() && mode == ImexMode::host_managed) continue;
    Result<bool> served = co_await client.serves(type);
    if (!served) co_return served.error().text();
    if (!*served)
      co_return "the CRD " + type.plural + "." + type.group +
          " is not installed: apply the files in the chart's crds folder";
  }
  co_return "";
}

// Waits until the server offers what we need, telling in `status` what is missing. Returns the
// version of resource.k8s.io.
Async<std::string> wait_for_api(k8s::Client& client, Time& time, ImexMode mode, Status& status) {
  for (;;) {
    std::string version;
    std::string trouble = co_await missing_api(client, mode, version);
    if (trouble.empty()) co_return version;
    if (trouble != status.trouble) LOG_WARNING("Not ready, retrying", {{"err", trouble}});
    status.trouble = std::move(trouble);
    co_await time.sleep(look_again);
  }
}

Async<Result<void>> reconcile_when_filled(Caches* caches, Reconciler* reconciler,
                                          k8s::ReconcileLoop* loop, Status* status) {
  co_await caches->wait_ready();
  status->loop = loop;
  LOG_INFO(1, "The caches are filled, reconciling", {{"domains", caches->domains().size()}});
  reconciler->tell_at_start();
  Result<void> ended = co_await loop->run(workers);
  co_return ended;
}

// The controller's work, while this process leads.
Async<Result<void>> work(World world, const Config& config, k8s::Client& client, Status& status) {
  auto executor = world.loop.get_executor();
  std::string version = co_await wait_for_api(client, world.time, config.mode, status);
  Settings settings = settings_of(config, std::move(version));
  Caches caches(executor, client, world.time, settings);
  k8s::EventRecorder events(executor, client, world.time, "compute-domain-controller",
                            config.pod_name);
  Reconciler reconciler(client, world.time, events, caches, settings);
  k8s::ReconcileLoop loop(executor, world.time, real_random(), "computedomains",
                          [&](std::string uid) { return reconciler.reconcile(std::move(uid)); });
  Burst burst;
  caches.on_event([&](std::string uid, Pace pace) {
    if (pace == Pace::now) {
      loop.add(std::move(uid));
      return;
    }
    const Duration wait = burst.gather(uid, world.time.now());
    loop.add_after(std::move(uid), wait);
  });
  status.trouble.clear();
  status.caches = &caches;
  struct Leave {
    Status& status;
    ~Leave() {
      status.caches = nullptr;
      status.loop = nullptr;
    }
  } leave{status};

  TaskGroup tasks(executor);
  caches.start(tasks);
  tasks.spawn("events", events.run());
  tasks.spawn("reconcile", reconcile_when_filled(&caches, &reconciler, &loop, &status));
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<void>> lead(World world, const Config* config, k8s::Client* client, Status* status) {
  if (!config->election) {
    Result<void> ended = co_await work(world, *config, *client, *status);
    co_return ended;
  }
  k8s::LeaseConfig lease;
  lease.key = {config->lease_namespace, config->lease_name};
  lease.identity = config->pod_name + "-" + random_uuid();
  lease.duration = config->lease_duration;
  lease.renew_deadline = config->renew_deadline;
  lease.retry_period = config->retry_period;
  CO_TRY_VOID(k8s::check(lease));
  k8s::LeaderElection election(*client, world.time, real_random(), lease);
  status->election = &election;
  status->trouble.clear();
  struct Leave {
    Status* status;
    ~Leave() { status->election = nullptr; }
  } leave{status};
  Result<void> ended =
      co_await election.run([&] { return work(world, *config, *client, *status); });
  co_return ended;
}

Result<std::optional<k8s::HttpEndpoint>> listen(World world, const Config& config,
                                                const Status& status) {
  if (config.http_endpoint.empty()) return std::optional<k8s::HttpEndpoint>{};
  TRY(k8s::HttpEndpoint endpoint,
      k8s::HttpEndpoint::listen(world.loop.get_executor(), world.time, config.http_endpoint,
                                "--http-endpoint"));
  endpoint.on_get("/healthz",
                  [](std::string_view) { return k8s::HttpReply{200, "text/plain", "ok\n"}; });
  endpoint.on_get("/readyz", [&status](std::string_view) { return readiness(status); });
  if (!config.metrics_path.empty())
    endpoint.on_get(config.metrics_path, [&status](std::string_view) {
      return k8s::HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(status)};
    });
  return std::optional<k8s::HttpEndpoint>{std::move(endpoint)};
}

Async<Result<void>> serve(World world, const Config& config) {
  Status status;
  CO_TRY(std::optional<k8s::HttpEndpoint> endpoint, listen(world, config, status));
  CO_TRY(k8s::Config api, k8s::load_config(config.kubeconfig));
  CO_TRY(std::unique_ptr<k8s::Transport> transport,
         k8s::make_http_transport(world.loop.get_executor(), world.time, std::move(api)));
  k8s::Client client(*transport, world.time);
  status.client = &client;

  TaskGroup tasks(world.loop.get_executor());
  if (endpoint) tasks.spawn("HTTP endpoint", endpoint->run());
  tasks.spawn("controller", lead(world, &config, &client, &status));
  tasks.spawn("thrift", stay_small(world.time));
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment) {
  CommandLine line{"nvdra controller", "compute-domain-controller",
                   "makes and keeps the objects of every ComputeDomain", flags()};
  std::variant<Args, int> read = read_command_line(line, arguments, environment);
  if (int* status = std::get_if<int>(&read)) return *status;
  const Args& args = std::get<Args>(read);
  Result<Config> config = read_config(args, environment);
  if (!config) return report_error(config.error().text(), exit_usage);
  LOG_INFO(0, log::Plain{startup_dump(args, config->gates)});
  LOG_INFO(0, log::Plain{describe(*config)});
  return run_main_loop([&](World world) { return serve(world, *config); }, "main.RunController");
}

}  // namespace nvdra::roles::controller
