// The ComputeDomains of the cluster, by UID. Every node knows all of them, so little is kept of
// each (node-side.md 18.3 no. 49).
#pragma once

#include "base/ids.hpp"
#include "k8s/informer.hpp"
#include "roles/kubelet_plugin/trouble.hpp"

#include <functional>
#include <optional>

namespace nvdra::roles::kubelet_plugin {

class Domains {
public:
  Domains(asio::any_io_executor executor, k8s::Client& client, Time& time, NodeName node);

  Async<Result<void>> run() { return informer_.run(); }
  k8s::Store& store() { return informer_.store; }
  // Before run(). Called after every change of what is kept; a domain that changes elsewhere, or
  // for other nodes, is no news.
  void on_news(std::function<void()> tell);
  // Why the cache is not to be relied on at the moment, or "".
  std::string trouble() const { return informer_.trouble(); }

  // The ComputeDomain `uid`, which must live in `space`. What the cache does not know is looked up
  // at the server before it counts as absent (18.1 no. 5). Absent, or in another namespace:
  // permanent. Cache not filled yet, server unreachable: retry.
  Async<Attempt<k8s::ObjectPtr>> require(std::string uid, std::string space);
  // The same, wherever it lives: for daemon claims.
  Async<Attempt<k8s::ObjectPtr>> require_anywhere(std::string uid);

  // As trim_domain() leaves it. nullptr: not known, or not known yet.
  k8s::ObjectPtr cached(const std::string& uid) const;
  // "namespace/name", or the UID of one that is not known.
  std::string text_of(const DomainUid& uid) const;

private:
  Async<Attempt<k8s::ObjectPtr>> look_up(std::string uid, std::string space);

  k8s::Client& client_;
  k8s::Informer informer_;
};

// What this node reads of a domain: whose it is, whether it is being deleted, and this node's entry
// in its status. Pure.
Json trim_domain(const Json& domain, const NodeName& node);

}  // namespace nvdra::roles::kubelet_plugin
