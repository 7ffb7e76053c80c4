// The role's parts, wired, and the order in which they start and stop (docs/architecture.md).
#pragma once

#include "base/fd.hpp"
#include "base/task_group.hpp"
#include "dra/health.hpp"
#include "imex/host_socket.hpp"
#include "roles/common/main_loop.hpp"
#include "roles/kubelet_plugin/clean_up.hpp"
#include "roles/kubelet_plugin/clique_label.hpp"
#include "roles/kubelet_plugin/config.hpp"
#include "roles/kubelet_plugin/domain_gate.hpp"
#include "roles/kubelet_plugin/health.hpp"
#include "roles/kubelet_plugin/host_gate.hpp"
#include "roles/kubelet_plugin/recovery.hpp"

#include <optional>

namespace nvdra::roles::kubelet_plugin {

// Makes and opens config.plugin_directory(). Errors name its flag.
Result<Fd> open_plugin_directory(const Config& config);

// Everything that lives as long as the role, in the order of construction.
class Plugin {
public:
  // `directory`: config.plugin_directory(). `config` and `client` outlive it.
  Plugin(World world, const Config& config, k8s::Client& client, cdi::SpecDir cdi, Fd directory);

  // Until cancelled, or until something fails that the role cannot live without.
  Async<Result<void>> run();

private:
  asio::any_io_executor executor() { return world_.loop.get_executor(); }
  bool driver_managed() const { return config_.mode == ImexMode::driver_managed; }
  DriverParts parts();
  void wire();
  Async<Result<void>> run_tasks(TaskGroup& tasks, Loaded loaded);
  Result<void> open_endpoint(TaskGroup& tasks);
  void start_health();
  Async<Result<void>> watch_fabric();
  Async<Result<void>> follow_version(std::string set_aside);
  Async<void> rebuild(std::string version);
  void tell_former_cliques();
  void tell_node(std::string reason, std::string message);

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

}  // namespace nvdra::roles::kubelet_plugin
