// The ComputeDomains of the cluster, by UID.
#pragma once

#include "base/ids.hpp"
#include "k8s/informer.hpp"
#include "roles/kubelet_plugin/trouble.hpp"

#include <optional>

namespace nvdra::roles::kubelet_plugin {

class Domains {
public:
  Domains(asio::any_io_executor executor, k8s::Client& client, Time& time);

  Async<Result<void>> run() { return informer_.run(); }
  k8s::Store& store() { return informer_.store; }
  // Why the cache is not to be relied on at the moment, or "".
  std::string trouble() const { return informer_.trouble(); }

  // The ComputeDomain `uid`, which must live in `space`. What the cache does not know is looked up
  // at the server before it counts as absent (18.1 no. 5). Absent, or in another namespace:
  // permanent. Cache not filled yet, server unreachable: retry.
  Async<Attempt<k8s::ObjectPtr>> require(std::string uid, std::string space);
  // The same, wherever it lives: for daemon claims.
  Async<Attempt<k8s::ObjectPtr>> require_anywhere(std::string uid);

  // nullptr: not known, or not known yet.
  k8s::ObjectPtr cached(const std::string& uid) const;
  // "namespace/name", or the UID of one that is not known.
  std::string text_of(const DomainUid& uid) const;

private:
  Async<Attempt<k8s::ObjectPtr>> look_up(std::string uid, std::string space);

  k8s::Client& client_;
  k8s::Informer informer_;
};

}  // namespace nvdra::roles::kubelet_plugin
