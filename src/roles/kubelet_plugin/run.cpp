#include "roles/kubelet_plugin/run.hpp"

#include "base/common_flags.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/resident.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "dra/health.hpp"
#include "imex/host_socket.hpp"
#include "k8s/config.hpp"
#include "k8s/http_transport.hpp"
#include "roles/common/command_line.hpp"
#include "roles/common/main_loop.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/clean_up.hpp"
#include "roles/kubelet_plugin/clique_label.hpp"
#include "roles/kubelet_plugin/config.hpp"
#include "roles/kubelet_plugin/domain_gate.hpp"
#include "roles/kubelet_plugin/driver_params.hpp"
#include "roles/kubelet_plugin/health.hpp"
#include "roles/kubelet_plugin/host_gate.hpp"
#include "roles/kubelet_plugin/recovery.hpp"
#include "roles/kubelet_plugin/served_cliques.hpp"

#include <boost/asio/this_coro.hpp>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr Duration drain = 5s;

std::vector<dra::SliceDevice> published_devices(ImexMode mode) {
  std::vector<dra::SliceDevice> devices{
      {"channel-0", {{"type", "channel"}, {"id", std::int64_t{0}}}}};
  if (mode == ImexMode::driver_managed)
    devices.push_back({"daemon-0", {{"type", "daemon"}, {"id", std::int64_t{0}}}});
  return devices;
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

// Everything that lives as long as the role, in the order of construction.
class Plugin {
public:
  Plugin(World world, const Config& config, k8s::Client& client, cdi::SpecDir cdi, Fd directory)
      : world_(world),
        config_(config),
        client_(client),
        cdi_(std::move(cdi)),
        directory_(std::move(directory)),
        news_(executor()),
        metrics_(world.time, config.node_name),
        checkpoint_(directory_.get(), config.plugin_directory(), world.time),
        domains_(executor(), client, world.time),
        facts_({config.container_driver_root, config.driver_root}, config.gates, world.time, news_),
        socket_({{config.container_driver_root, config.driver_root}, config.host_socket},
                world.time),
        host_gate_(socket_),
        domain_gate_({client, world.time, domains_, facts_, news_},
                     {.node = NodeName(config.node_name),
                      .namespaces = config.namespaces(),
                      .cliques = config.gates.enabled("ComputeDomainCliques")}),
        node_label_(executor(), client, world.time, NodeName(config.node_name), news_),
        left_label_(node_label_, domains_, world.time, NodeName(config.node_name),
                    [this](std::string reason, std::string message) {
                      tell_node(std::move(reason), std::move(message));
                    }),
        directories_(directory_.get(), config.plugin_directory()),
        base_(cdi_, roots(config)),
        events_(executor(), client, world.time, "compute-domain-kubelet-plugin", config.node_name),
        driver_(parts(), driver_config(config)),
        clean_up_(parts(), driver_, real_random()),
        label_(client, world.time, facts_, news_, NodeName(config.node_name), config.clique_label),
        slices_(
            executor(), client, world.time, real_random(),
            {std::string(driver_name), NodeName(config.node_name), published_devices(config.mode)}),
        server_(world.loop, world.time, driver_,
                {std::string(driver_name), config.plugin_directory(), config.registrar_directory}),
        health_server_(world.loop, server_.service_path(), server_.registrar_path()) {
    domains_.store().on_change([this](const auto&, const auto&) { news_.notify(); });
    facts_.check_driver(driver_managed() && config.gates.enabled("IMEXDaemonsWithDNSNames"));
    facts_.on_finding([this](std::string reason, std::string message) {
      tell_node(reason, std::move(message));
      if (reason == "FabricCliqueChanged") tell_former_cliques();
    });
    metrics_.watch_fabric({.changes = [this] { return facts_.clique_changes(); },
                           .mixed = [this] { return !facts_.mixed().empty(); },
                           .state = [this] { return fabric_state_number(facts_.gpus()); }});
  }

  // Start order and stop order: docs/architecture.md.
  Async<Result<void>> run() {
    CO_TRY(std::string boot_id, dra::read_boot_id());
    CO_TRY(Loaded loaded, co_await load_checkpoint(checkpoint_, cdi_, std::move(boot_id)));
    clean_up_.spare(std::move(loaded.dropped));
    metrics_.count_devices(checkpoint_.current());

    TaskGroup tasks(executor());
    Result<void> ended = co_await run_tasks(tasks, std::move(loaded));
    // Whatever ended the role: answers in flight are let out while the loop still runs.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await server_.stop(drain);
    co_await health_server_.stop();
    co_return ended;
  }

private:
  asio::any_io_executor executor() { return world_.loop.get_executor(); }

  DriverParts parts() {
    Gate& gate = driver_managed() ? static_cast<Gate&>(domain_gate_) : host_gate_;
    DriverParts parts{executor(), world_.time, client_,  checkpoint_, cdi_,    domains_,
                      facts_,     gate,        metrics_, news_,       &events_};
    if (!driver_managed()) {
      parts.left_label = &left_label_;
      return parts;
    }
    parts.label = &node_label_;
    parts.directories = &directories_;
    parts.base = &base_;
    return parts;
  }

  bool driver_managed() const { return config_.mode == ImexMode::driver_managed; }

  static Roots roots(const Config& config) {
    return {config.container_driver_root, config.driver_root, config.proc_devices,
            config.capability()};
  }

  static DriverConfig driver_config(const Config& config) {
    DriverConfig driver;
    driver.mode = config.mode;
    driver.roots = roots(config);
    driver.node = NodeName(config.node_name);
    driver.namespaces = config.namespaces();
    return driver;
  }

  // Does not throw: cancellation is an ordinary end here, because the stop order follows.
  Async<Result<void>> run_tasks(TaskGroup& tasks, Loaded loaded) try {
    if (!config_.http_endpoint.empty()) {
      CO_TRY(k8s::HttpEndpoint made,
             make_endpoint(world_, config_, metrics_, {&domains_, &facts_, &server_, &slices_}));
      endpoint_.emplace(std::move(made));
      tasks.spawn("HTTP endpoint", endpoint_->run());
    }
    // The service answers before anything else is known: a claim waits for it, and can always be
    // unprepared.
    Result<void> started = co_await server_.start();
    if (!started) {
      tasks.stop();
      Result<void> stopped = co_await tasks.join();
      (void)stopped;  // the failed start is what counts
      co_return started;
    }
    if (config_.health_port >= 0) start_health();
    tasks.spawn("watch computedomains", domains_.run());
    checkpoint_.on_set_aside(
        [this](std::string text) { tell_node("CheckpointCorrupted", std::move(text)); });
    if (driver_managed()) tasks.spawn("watch the node", node_label_.run());
    if (!driver_managed()) tasks.spawn("look for a left label", left_label_.look());
    tasks.spawn("events", events_.run());
    tasks.spawn("fabric", watch_fabric());
    tasks.spawn("clique label", label_.run());
    tasks.spawn("API version", follow_version(std::move(loaded.set_aside)));
    tasks.spawn("slices", slices_.run());
    tasks.spawn("thrift", stay_small(world_.time));
    Result<void> ended = co_await tasks.join();
    co_return ended;
  } catch (const boost::system::system_error& thrown) {
    if (thrown.code() != asio::error::operation_aborted) throw;
    co_return ok();
  }

  void start_health() {
    Result<int> port = health_server_.start(static_cast<int>(config_.health_port));
    if (port) {
      LOG_INFO(0, "Serving health", {{"port", *port}});
    } else {
      LOG_ERROR("Cannot serve health", {{"err", port.error().text()}});
    }
  }

  Async<Result<void>> watch_fabric() {
    co_await facts_.refresh();
    if (driver_managed()) {
      Result<void> written = base_.refresh(facts_.driver_version(), false);
      if (!written)
        LOG_WARNING("Cannot write the CDI file of the driver, daemon claims will try again",
                    {{"err", written.error().text()}});
      tell_former_cliques();
    }
    Result<void> ended = co_await facts_.run();
    co_return ended;
  }

  // The version of resource.k8s.io, then what needs claims: rebuilding and cleaning up.
  Async<Result<void>> follow_version(std::string set_aside) {
    std::string version;
    while (version.empty()) {
      Result<std::string> found = co_await k8s::discover_resource_version(client_);
      if (found) {
        version = *std::move(found);
      } else {
        LOG_WARNING("The API server does not tell its versions, retrying",
                    {{"err", found.error().text()}});
        co_await world_.time.sleep(2s);
      }
    }
    driver_.set_resource_version(version);
    clean_up_.set_resource_version(version);
    if (!set_aside.empty()) {
      tell_node("CheckpointCorrupted", set_aside);
      bool rebuilt = false;
      while (!rebuilt) {
        Result<std::size_t> entered =
            co_await rebuild_checkpoint(parts(), NodeName(config_.node_name), version);
        rebuilt = entered.has_value();
        if (!rebuilt) {
          LOG_WARNING("Cannot rebuild the checkpoint yet, retrying",
                      {{"err", entered.error().text()}});
          co_await world_.time.sleep(2s);
        }
      }
      metrics_.count_devices(checkpoint_.current());
    }
    Result<void> ended = co_await clean_up_.run();
    co_return ended;
  }

  void tell_former_cliques() {
    if (!driver_managed() || !facts_.clique()) return;
    for (const std::string& each :
         daemons_of_former_cliques(checkpoint_.current(), cdi_, *facts_.clique())) {
      LOG_WARNING(each);
      tell_node("FabricCliqueChanged", each);
    }
  }

  // The name as UID: so kubelets write, and kubectl describe looks.
  void tell_node(std::string reason, std::string message) {
    events_.record(k8s::EventType::warning,
                   {"v1", "Node", {"", config_.node_name}, config_.node_name}, std::move(reason),
                   std::move(message));
  }

  World world_;
  const Config& config_;
  k8s::Client& client_;
  cdi::SpecDir cdi_;
  Fd directory_;
  Event news_;
  Metrics metrics_;
  dra::CheckpointStore checkpoint_;
  Domains domains_;
  NodeFacts facts_;
  imex::HostSocket socket_;
  HostGate host_gate_;
  DomainGate domain_gate_;
  NodeLabel node_label_;
  LeftLabel left_label_;
  DomainDirectories directories_;
  BaseSpec base_;
  k8s::EventRecorder events_;
  Driver driver_;
  CleanUp clean_up_;
  CliqueLabel label_;
  dra::SlicePublisher slices_;
  dra::Server server_;
  dra::HealthServer health_server_;
  std::optional<k8s::HttpEndpoint> endpoint_;
};

void prepare_proc(const Config& config) {
  if (config.simulated) return;
  Result<void> unmounted = unmount_driver_proc();
  if (!unmounted)
    LOG_WARNING("Cannot unmount over /proc/driver/nvidia", {{"err", unmounted.error().text()}});
  if (!config.mask_driver_params) return;
  Result<void> masked = mask_driver_params(config.plugin_directory());
  if (!masked) LOG_WARNING("Cannot mask the driver's parameters", {{"err", masked.error().text()}});
}

Async<Result<void>> serve(World world, const Config& config) {
  CO_TRY_VOID(make_directories(config.plugin_directory(), 0750));
  CO_TRY(Fd directory, open_directory(config.plugin_directory()));
  CO_TRY(cdi::SpecDir cdi, cdi::SpecDir::open(config.cdi_root));
  prepare_proc(config);
  CO_TRY(k8s::Config api, k8s::load_config(config.kubeconfig));
  CO_TRY(std::unique_ptr<k8s::Transport> transport,
         k8s::make_http_transport(world.loop.get_executor(), world.time, std::move(api)));
  k8s::Client client(*transport, world.time);
  LOG_INFO(0, "Kubelet directories",
           {{"plugin", config.plugin_directory()}, {"registrar", config.registrar_directory}});
  Plugin plugin(world, config, client, std::move(cdi), std::move(directory));
  Result<void> ended = co_await plugin.run();
  co_return ended;
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment) {
  CommandLine line{"nvdra kubelet-plugin", "compute-domain-kubelet-plugin",
                   "prepares the claims of ComputeDomains on one node", flags()};
  std::variant<Args, int> read = read_command_line(line, arguments, environment);
  if (int* status = std::get_if<int>(&read)) return *status;
  const Args& args = std::get<Args>(read);
  Result<Config> config = read_config(args, environment);
  if (!config) return report_error(config.error().text(), exit_usage);
  LOG_INFO(0, log::Plain{startup_dump(args, config->gates)});
  return run_main_loop([&](World world) { return serve(world, *config); }, "main.RunPlugin");
}

}  // namespace nvdra::roles::kubelet_plugin
