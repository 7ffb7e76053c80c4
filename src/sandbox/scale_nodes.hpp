// Thousands of simulated GPU nodes without processes: what kubelets, nvdra's kubelet plugins and
// its daemons would write, written to the Registry at once. For measuring the controller only.
//
//   workload pod on a node   the node is labelled with the pod's domain; the pod is Ready when the
//                            node's entry in the clique is (cluster-side.md 5.2)
//   daemon pod on a node     it is Ready at once and joins its clique (node-side.md 11.5)
//   pod deleted              its label or entry goes, then the pod
#pragma once

#include "base/event.hpp"
#include "sandbox/store_registry.hpp"

#include <memory>

namespace nvdra::sandbox {

// The label of workload pods: the UID of their ComputeDomain.
inline constexpr std::string_view scale_domain_label = "sandbox/domain";

std::string scale_node(int number);    // its name
std::string scale_clique(int number);  // the value of nvidia.com/gpu.clique

class ScaleNodes {
public:
  ScaleNodes(asio::any_io_executor executor, Registry& registry);
  ~ScaleNodes();

  // `count` nodes with their devices, each `per_clique` neighbours in one clique.
  Result<void> make(int count, int per_clique);
  // Until cancelled.
  Async<Result<void>> run();

private:
  class Player;
  Registry& registry_;
  Event changed_;
  std::unique_ptr<Player> player_;
  std::shared_ptr<Feed::Handler> handler_;
};

}  // namespace nvdra::sandbox
