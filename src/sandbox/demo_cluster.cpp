#include "sandbox/demo_cluster.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "sandbox/crd_yaml.hpp"
#include "sandbox/demo_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace nvdra::sandbox {
namespace {

// As the chart installs them.
constexpr std::string_view channel_class = R"yaml(
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: compute-domain-default-channel.nvidia.com
spec:
  selectors:
  - cel:
      expression: >-
        device.driver == 'compute-domain.nvidia.com' &&
        device.attributes['compute-domain.nvidia.com'].type == 'channel' &&
        device.attributes['compute-domain.nvidia.com'].id == 0
)yaml";
constexpr std::string_view daemon_class = R"yaml(
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: compute-domain-daemon.nvidia.com
spec:
  selectors:
  - cel:
      expression: >-
        device.driver == 'compute-domain.nvidia.com' &&
        device.attributes['compute-domain.nvidia.com'].type == 'daemon'
)yaml";
constexpr std::string_view daemon_account = "compute-domain-daemon-service-account";
// What the controller asks for, and the names under which it has nvdra's executable.
constexpr std::string_view image = "nvdra";
constexpr std::string_view image_programs[] = {"nvdra", "compute-domain-daemon"};

std::string address_of_node(int number) {
  return fmt::format("{}{}", loopback_prefix(), number);
}

}  // namespace

std::string_view mode_word(ImexMode mode) {
  return mode == ImexMode::host_managed ? "hostManaged" : "driverManaged";
}

Cluster::Cluster(asio::io_context& loop, Time& time, ClusterOptions options)
    : loop_(loop),
      time_(time),
      options_(std::move(options)),
      registry_(time),
      controllers_(loop.get_executor(), registry_) {}

Cluster::~Cluster() {
  for (const Node& node : nodes_) remove_node_mounts(node.layout);
}

Cluster::Node* Cluster::node(const std::string& name) {
  for (Node& node : nodes_)
    if (node.layout.name == name) return &node;
  return nullptr;
}

NodeLayout Cluster::layout(int number) const {
  NodeLayout node{.name = fmt::format("node-{}", number),
                  .folder = fmt::format("{}/node-{}", options_.folder, number),
                  .address = address_of_node(number),
                  .peers = {},
                  .cluster_uuid = "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
                  .number = static_cast<unsigned>(number),
                  .program = options_.program};
  for (int peer = 1; peer <= options_.nodes; ++peer) node.peers.push_back(address_of_node(peer));
  return node;
}

RoleCommand Cluster::role(const std::string& name, std::vector<std::string> arguments,
                          std::vector<std::string> environment) const {
  environment.emplace_back("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
  for (std::string argument :
       {"--kubeconfig=" + kubeconfig(), fmt::format("--imex-mode={}", mode_word(options_.mode)),
        "--namespace=" + std::string(driver_namespace), fmt::format("-v={}", options_.verbosity)})
    arguments.push_back(std::move(argument));
  if (options_.mode == ImexMode::host_managed)
    arguments.emplace_back("--feature-gates=HostManagedIMEXDaemon=true");
  return {.name = name,
          .command = {.program = options_.nvdra,
                      .arguments = std::move(arguments),
                      .environment = std::move(environment)},
          .log = fmt::format("{}/log/{}.log", options_.folder, name)};
}

RoleCommand Cluster::controller_role() const {
  return role("controller",
              {"controller", "--pod-name=nvdra-controller-0", fmt::format("--image-name={}", image),
               "--cd-daemon-priority-class-name=system-node-critical",
               fmt::format("--log-verbosity-cd-daemon={}", options_.verbosity)},
              {});
}

RoleCommand Cluster::plugin_role(const NodeLayout& node) const {
  return role(
      "kubelet-plugin-" + node.name,
      {"kubelet-plugin", "--node-name=" + node.name, "--nvidia-driver-root=" + node.driver_root(),
       "--container-driver-root=" + node.driver_root(), "--cdi-root=" + node.folder + "/cdi",
       "--kubelet-registrar-directory-path=" + node.folder + "/plugins_registry",
       "--kubelet-plugins-directory-path=" + node.folder + "/plugins",
       "--gpu-clique-label-enabled=true"},
      {"ALT_PROC_DEVICES_PATH=" + node.proc_devices(), "HEALTHCHECK_PORT=-1"});
}

Result<void> Cluster::create_objects() {
  const std::string crds = options_.folder + "/crds";
  TRY_VOID(make_directories(crds, 0755));
  for (const DemoFile& file : crd_files()) {
    TRY_VOID(replace_file(AT_FDCWD, crds + "/" + file.name, file.text, 0644));
  }
  TRY_VOID(registry_.add_crds(crds));
  Json space = JsonObject{{"metadata", JsonObject{{"name", driver_namespace}}}};
  TRY(ItemPtr made, registry_.create(registry_.resource("namespaces"), "", std::move(space)));
  if (options_.mode == ImexMode::driver_managed) {
    Json account = JsonObject{{"metadata", JsonObject{{"name", daemon_account}}}};
    TRY(made, registry_.create(registry_.resource("serviceaccounts"), std::string(driver_namespace),
                               std::move(account)));
  }
  std::vector<std::string_view> classes = {channel_class};
  if (options_.mode == ImexMode::driver_managed) classes.push_back(daemon_class);
  for (const std::string_view text : classes) {
    TRY(std::vector<Json> documents, parse_yaml(text));
    TRY(made, registry_.create(registry_.resource("deviceclasses.resource.k8s.io"), "",
                               std::move(documents.at(0))));
  }
  return ok();
}

// The pods' network, and the API server as they see it.
Result<void> Cluster::make_network() {
  network_ = PodNetwork::make();
  TRY(Fd listening, network_->listen_for_api());
  TRY(front_, ApiFront::make(loop_.get_executor(), std::move(listening), server_->port(),
                             {network_->api_host()}));
  return ok();
}

KubeletOptions Cluster::kubelet(const NodeLayout& node) const {
  std::vector<cdi::Mount> files;
  for (const std::string_view program : image_programs)
    files.push_back({options_.nvdra, fmt::format("/usr/bin/{}", program), {"ro"}});
  // So that the simulated tools know their node, and its faults.
  files.push_back({node.driver_root() + "/etc/nvdra-sandbox", "/etc/nvdra-sandbox", {"ro"}});
  return {.node = node.name,
          .folder = node.folder,
          .address = node.address,
          .helper = {options_.program},
          .number = node.number,
          .network = network_.get(),
          .api = {network_->api_host(), front_->port(), front_->authority()},
          .images = {{std::string(image), std::move(files)}}};
}

Result<void> Cluster::prepare() {
  TRY_VOID(make_directories(options_.folder + "/log", 0755));
  TRY_VOID(create_objects());
  const asio::any_io_executor executor = loop_.get_executor();
  TRY(server_, ApiServer::listen(executor, registry_, {.port = options_.port, .pods = &kubelets_}));
  TRY_VOID(make_network());
  TRY_VOID(replace_file(AT_FDCWD, kubeconfig(), server_->kubeconfig(), 0600));
  controller_ = std::make_unique<RoleProcess>(executor, time_, controller_role());
  for (int number = 1; number <= options_.nodes; ++number) {
    const NodeLayout node = layout(number);
    TRY_VOID(lay_out(node));
    kubelets_.add(&nodes_.emplace_back(*this, node, kubelet(node), plugin_role(node)).kubelet);
  }
  return ok();
}

Cluster::Node::Node(Cluster& cluster, NodeLayout node, KubeletOptions options, RoleCommand role)
    : layout(std::move(node)),
      service(cluster.loop_.get_executor(), cluster.time_, layout.driver_root()),
      shell(cluster.time_, service, layout.driver_root(), [this] { return kubelet.processes(); }),
      kubelet(cluster.loop_.get_executor(), cluster.time_, cluster.registry_, std::move(options)),
      plugin(cluster.loop_.get_executor(), cluster.time_, std::move(role)) {}

Async<Result<void>> Cluster::run(std::function<Async<Result<void>>(Cluster&)> body) {
  if (options_.mode == ImexMode::host_managed) {
    for (Node& node : nodes_) {
      CO_TRY_VOID(node.service.start());
    }
  }
  TaskGroup parts(loop_.get_executor());
  parts.spawn("API server", server_->run());
  parts.spawn("API server for pods", front_->run());
  parts.spawn("controllers", controllers_.run());
  parts.spawn("controller", controller_->run());
  for (Node& node : nodes_) {
    parts.spawn(node.layout.name, node.kubelet.run());
    parts.spawn(node.layout.name, node.service.run());
    parts.spawn(node.layout.name, node.plugin.run());
  }
  TaskGroup stage(loop_.get_executor());
  stage.spawn("cluster", body(*this));
  Result<void> ended = co_await stage.join();
  // The end takes its time, also when a signal has asked for it.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await stop_roles();
  parts.stop();
  Result<void> joined = co_await parts.join();
  co_return ended ? joined : ended;
}

// In good order, while the API server still answers.
Async<void> Cluster::stop_roles() {
  TaskGroup stops(loop_.get_executor());
  const auto stop = [](RoleProcess* role) -> Async<Result<void>> {
    co_await role->stop();
    co_return ok();
  };
  stops.spawn("controller", stop(controller_.get()));
  for (Node& node : nodes_) stops.spawn(node.layout.name, stop(&node.plugin));
  Result<void> stopped = co_await stops.join();
  (void)stopped;
}

// What is not there yet, or "".
std::string Cluster::missing() const {
  for (const Node& node : nodes_) {
    bool published = false;
    for (const ItemPtr& slice : registry_.all(registry_.resource("resourceslices.resource.k8s.io")))
      published |= text_or_empty(slice->json(), "spec/nodeName") == node.layout.name;
    if (!published) return fmt::format("{} has not published its devices", node.layout.name);
  }
  return {};
}

Async<Result<void>> Cluster::wait_ready(Duration limit) {
  for (const Instant end = time_.now() + limit; !missing().empty();) {
    if (time_.now() > end) {
      std::string text =
          fmt::format("{} after {} s", missing(),
                      std::chrono::duration_cast<std::chrono::seconds>(limit).count());
      for (const Node& node : nodes_)
        text += fmt::format("\n--- {}:\n{}", node.plugin.role().log, node.plugin.last_lines());
      co_return refuse(
          text + fmt::format("\n--- {}:\n{}", controller_->role().log, controller_->last_lines()));
    }
    co_await time_.sleep(20ms);
  }
  co_return ok();
}

}  // namespace nvdra::sandbox
