// A whole sandbox: API server, controllers, simulated GPU nodes with kubelets, and nvdra's own
// controller and kubelet plugins as processes of the real executable. Its daemons run in the pods
// that the controller's DaemonSets ask for.
//
//   folder/kubeconfig, folder/control (socket), folder/log/*.log, folder/node-N/… (node_layout.hpp)
#pragma once

#include "sandbox/api_front.hpp"
#include "sandbox/api_server.hpp"
#include "sandbox/controllers.hpp"
#include "sandbox/kubelet_node.hpp"
#include "sandbox/node_layout.hpp"
#include "sandbox/node_role.hpp"
#include "sandbox/node_service.hpp"

#include <boost/asio/io_context.hpp>

#include <deque>
#include <functional>

namespace nvdra::sandbox {

inline constexpr std::string_view driver_namespace = "dra-driver-nvidia-gpu";

enum class ImexMode { driver_managed, host_managed };
std::string_view mode_word(ImexMode mode);  // "driverManaged", as in nvdra's flags

struct ClusterOptions {
  ImexMode mode = ImexMode::driver_managed;
  int nodes = 2;
  std::string folder = {};   // exists and is empty
  std::string nvdra = {};    // the executable
  std::string program = {};  // nvdra-sandbox
  std::uint16_t port = 0;
  int verbosity = 4;  // of nvdra's roles
};

class Cluster {
public:
  Cluster(asio::io_context& loop, Time& time, ClusterOptions options);
  ~Cluster();

  // Creates the files and objects; opens the API server's port.
  Result<void> prepare();
  // Everything runs while `body` does, and has ended when this returns.
  Async<Result<void>> run(std::function<Async<Result<void>>(Cluster&)> body);

  struct Node {
    Node(Cluster& cluster, NodeLayout node, KubeletOptions options, RoleCommand role);
    NodeLayout layout;
    HostService service;
    NodeShell shell;
    Kubelet kubelet;
    RoleProcess plugin;
  };

  const ClusterOptions& options() const { return options_; }
  Time& time() { return time_; }
  Registry& registry() { return registry_; }
  ApiServer& server() { return *server_; }
  PodRuntime& pods() { return kubelets_; }
  const PodNetwork& network() const { return *network_; }
  bool controller_runs() const { return controller_->running(); }
  std::optional<pid_t> controller_pid() const { return controller_->pid(); }
  std::deque<Node>& nodes() { return nodes_; }
  Node* node(const std::string& name);  // nullptr if there is none
  std::string kubeconfig() const { return options_.folder + "/kubeconfig"; }

  // Waits until every node publishes its devices; after `limit` the error shows the logs.
  Async<Result<void>> wait_ready(Duration limit);

private:
  Result<void> make_network();
  NodeLayout layout(int number) const;
  KubeletOptions kubelet(const NodeLayout& node) const;
  RoleCommand role(const std::string& name, std::vector<std::string> arguments,
                   std::vector<std::string> environment) const;
  RoleCommand controller_role() const;
  RoleCommand plugin_role(const NodeLayout& node) const;
  Result<void> create_objects();
  Async<void> stop_roles();
  std::string missing() const;

  asio::io_context& loop_;
  Time& time_;
  ClusterOptions options_;
  Registry registry_;
  Controllers controllers_;
  Kubelets kubelets_;
  std::unique_ptr<PodNetwork> network_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<ApiFront> front_;  // the server as pods see it
  std::deque<Node> nodes_;
  std::unique_ptr<RoleProcess> controller_;
};

}  // namespace nvdra::sandbox
