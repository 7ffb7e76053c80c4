// The kubelet of one simulated node: its Node object, its plugins, its pods.
//
// Directories, all below the node's own: `plugins_registry` (where plugins announce themselves),
// `plugins`, `cdi`, `pods`, `logs` (of containers, also after their pods' end).
#pragma once

#include "sandbox/api_pods.hpp"
#include "sandbox/pod_worker.hpp"

#include <map>
#include <memory>

namespace nvdra::sandbox {

struct KubeletOptions {
  std::string node;
  std::string folder;   // the node's directory
  std::string address;  // InternalIP
  std::string version = "v1.34.4";
  std::map<std::string, std::string> labels = {};
  ContainerHelper helper = {};
  unsigned number = 1;            // of the node, for the addresses of its pods
  PodNetwork* network = nullptr;  // nullptr: pods have the node's address
  PodApi api = {};                // for the service accounts of pods
  PodImages images = {};
  Duration call_limit = 45s;  // of one call to a plugin
  Duration retry = 60s;       // after a failure of a pod, up to 1.5 times as long
};

class Kubelet {
public:
  Kubelet(asio::any_io_executor executor, Time& time, Registry& registry, KubeletOptions options);
  ~Kubelet();

  // Until cancelled; then containers are killed. Creates the Node object and the directories.
  Async<Result<void>> run();

  const KubeletOptions& options() const { return options_; }
  const Plugins& plugins() const { return plugins_; }

  // The processes that stand for this node's containers.
  std::vector<pid_t> processes() const;

  // Of a pod of this node, as PodRuntime.
  Async<Result<void>> logs(ItemPtr pod, LogQuery query, PodOutput& output);
  Async<Result<int>> exec(ItemPtr pod, ExecQuery query, PodOutput& output);

private:
  Result<void> make_directories();
  void put_node();
  void take_up_pods();
  Async<Result<void>> serve_pod(std::string uid);
  Result<Container*> container_of(const Item& pod, const std::string& name);

  asio::any_io_executor executor_;
  Time& time_;
  Registry& registry_;
  KubeletOptions options_;
  Plugins plugins_;
  NodeClaims claims_;
  Event changed_;
  std::map<std::string, std::unique_ptr<PodWorker>> workers_;  // by UID
  std::shared_ptr<Feed::Handler> handler_;
  TaskGroup pods_;
};

// The kubelets of a cluster as the API server sees them.
class Kubelets final : public PodRuntime {
public:
  void add(Kubelet* kubelet) { kubelets_[kubelet->options().node] = kubelet; }
  Async<Result<void>> logs(ItemPtr pod, LogQuery query, PodOutput& output) override;
  Async<Result<int>> exec(ItemPtr pod, ExecQuery query, PodOutput& output) override;

private:
  Result<Kubelet*> of(const Item& pod) const;
  std::map<std::string, Kubelet*> kubelets_;
};

}  // namespace nvdra::sandbox
