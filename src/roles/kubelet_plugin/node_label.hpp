// The node label resource.nvidia.com/computeDomain: which domain this node works for at the moment.
// The domain's DaemonSet follows it (cluster-side.md 4.10, node-side.md 6.8.1, 9.3).
//   * Put only where there is none, guarded by the node's version; never taken from another domain.
//   * Removed only while it still names the domain in question (report 58), and only when nothing
//     on this node needs it any more (18.1 no. 19). Putting and removing exclude each other.
// Known from a watch on this node alone; news are notified at every change of the label.
#pragma once

#include "k8s/informer.hpp"
#include "roles/kubelet_plugin/turns.hpp"

#include <functional>

namespace nvdra::roles::kubelet_plugin {

class NodeLabel {
public:
  NodeLabel(asio::any_io_executor executor, k8s::Client& client, Time& time, NodeName node,
            Event& news);

  // Until cancelled.
  Async<Result<void>> run() { return informer_.run(); }

  // The domain that the node works for; empty: none.
  Async<Result<DomainUid>> holder();

  struct Put {
    bool changed = false;  // it was not there before
    DomainUid holder;      // another domain that has the node; then nothing was done
  };
  Async<Result<Put>> put(DomainUid domain);

  // A success too when the label names another domain, and when `needed` says that it is needed;
  // `needed` is asked while no put() is under way.
  Async<Result<void>> remove(DomainUid domain, std::function<bool()> needed);

private:
  Async<Result<k8s::Object>> node(bool fresh);

  k8s::Client& client_;
  NodeName name_;
  k8s::Informer informer_;
  Turns turns_;
};

// The merge patch that puts the label onto the node as it was read. Pure.
Json put_label_patch(const k8s::Object& node, const DomainUid& domain);

}  // namespace nvdra::roles::kubelet_plugin
