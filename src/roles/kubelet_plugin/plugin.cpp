#include "roles/kubelet_plugin/plugin.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/resident.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/served_cliques.hpp"

#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr Duration drain = 5s;

Roots roots(const Config& config) {
  return {config.container_driver_root, config.driver_root, config.proc_devices,
          config.capability()};
}

DriverConfig driver_config(const Config& config) {
  DriverConfig driver;
  driver.mode = config.mode;
  driver.roots = roots(config);
  driver.node = NodeName(config.node_name);
  driver.namespaces = config.namespaces();
  return driver;
}

}  // namespace

Result<Fd> open_plugin_directory(const Config& config) {
  const std::string path = config.plugin_directory();
  const std::string step =
      fmt::format("make the plugin's directory below that of {}", plugins_flag);
  if (Result<void> made = make_directories(path, 0750); !made)
    return std::move(made).failure().during(step);
  Result<Fd> opened = open_directory(path);
  if (!opened) return std::move(opened).failure().during(step);
  return opened;
}

Plugin::Plugin(World world, const Config& config, k8s::Client& client, cdi::SpecDir cdi,
               Fd directory)
    : world_(world),
      config_(config),
      client_(client),
      cdi_(std::move(cdi)),
      directory_(std::move(directory)),
      news_(executor()),
      metrics_(world.time, config.node_name),
      checkpoint_(directory_.get(), config.plugin_directory(), world.time),
      domains_(executor(), client, world.time, NodeName(config.node_name)),
      facts_({config.container_driver_root, config.driver_root}, config.gates, world.time, news_),
      socket_({{config.container_driver_root, config.driver_root}, config.host_socket}, world.time),
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
              {.driver = std::string(driver_name),
               .plugin_directory = config.plugin_directory(),
               .registrar_directory = config.registrar_directory,
               .plugin_flag = std::string(plugins_flag),
               .registrar_flag = std::string(registrar_flag)}),
      health_server_(world.loop, server_.service_path(), server_.registrar_path()) {
  wire();
}

void Plugin::wire() {
  domains_.on_news([this] { news_.notify(); });
  facts_.check_driver(driver_managed() && config_.gates.enabled("IMEXDaemonsWithDNSNames"));
  facts_.on_finding([this](std::string reason, std::string message) {
    tell_node(reason, std::move(message));
    if (reason == "FabricCliqueChanged") tell_former_cliques();
  });
  metrics_.watch_fabric({.changes = [this] { return facts_.clique_changes(); },
                         .mixed = [this] { return !facts_.mixed().empty(); },
                         .state = [this] { return fabric_state_number(facts_.gpus()); }});
}

// Start order and stop order: docs/architecture.md.
Async<Result<void>> Plugin::run() {
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

DriverParts Plugin::parts() {
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

// Does not throw: cancellation is an ordinary end here, because the stop order follows.
Async<Result<void>> Plugin::run_tasks(TaskGroup& tasks, Loaded loaded) try {
  if (!config_.http_endpoint.empty()) {
    CO_TRY_VOID(open_endpoint(tasks));
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

Result<void> Plugin::open_endpoint(TaskGroup& tasks) {
  TRY(k8s::HttpEndpoint made,
      make_endpoint(world_, config_, metrics_, {&domains_, &facts_, &server_, &slices_}));
  endpoint_.emplace(std::move(made));
  tasks.spawn("HTTP endpoint", endpoint_->run());
  return ok();
}

void Plugin::start_health() {
  Result<int> port = health_server_.start(static_cast<int>(config_.health_port));
  if (port) {
    LOG_INFO(0, "Serving health", {{"port", *port}});
  } else {
    LOG_ERROR("Cannot serve health", {{"err", port.error().text()}});
  }
}

Async<Result<void>> Plugin::watch_fabric() {
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
Async<Result<void>> Plugin::follow_version(std::string set_aside) {
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
  if (!set_aside.empty()) tell_node("CheckpointCorrupted", set_aside);
  // Always: a run before this one may have lost the checkpoint, and ended before it had it back.
  co_await rebuild(version);
  Result<void> ended = co_await clean_up_.run();
  co_return ended;
}

Async<void> Plugin::rebuild(std::string version) {
  for (;;) {
    Result<std::size_t> entered =
        co_await rebuild_checkpoint(parts(), NodeName(config_.node_name), version);
    if (entered) break;
    LOG_WARNING("Cannot rebuild the checkpoint yet, retrying", {{"err", entered.error().text()}});
    co_await world_.time.sleep(2s);
  }
  metrics_.count_devices(checkpoint_.current());
}

void Plugin::tell_former_cliques() {
  if (!driver_managed() || !facts_.clique()) return;
  for (const std::string& each :
       daemons_of_former_cliques(checkpoint_.current(), cdi_, *facts_.clique())) {
    LOG_WARNING(each);
    tell_node("FabricCliqueChanged", each);
  }
}

// The name as UID: so kubelets write, and kubectl describe looks.
void Plugin::tell_node(std::string reason, std::string message) {
  events_.record(k8s::EventType::warning,
                 {"v1", "Node", {"", config_.node_name}, config_.node_name}, std::move(reason),
                 std::move(message));
}

}  // namespace nvdra::roles::kubelet_plugin
