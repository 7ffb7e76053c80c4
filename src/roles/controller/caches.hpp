// What the controller watches, and which ComputeDomain an event concerns.
#pragma once

#include "base/task_group.hpp"
#include "k8s/informer.hpp"
#include "roles/controller/leftovers.hpp"

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace nvdra::roles::controller {

// How soon an event is to be worked on. Of the many that come while daemons start, several make one
// reconcile.
enum class Pace { now, soon };

// Keys of the work queue are UIDs of ComputeDomains. All templates of the cluster are watched, not
// only labelled ones: a name that somebody else holds must be seen to become free (W-C8).
// DaemonSets, cliques and daemon pods are watched in the managed namespaces only, nodes while they
// carry our label; in hostManaged none of them (unless leftovers are to be cleaned up). Only what
// is read is kept (daemon_pod.hpp).
class Caches {
public:
  Caches(asio::any_io_executor executor, k8s::Client& client, Time& time, Settings settings);

  // `queue` is called with every UID that an event concerns.
  void on_event(std::function<void(std::string uid, Pace pace)> queue);
  void start(TaskGroup& tasks);
  Async<void> wait_ready();

  k8s::Store& domains() { return domains_.store; }
  const k8s::Store& domains() const { return domains_.store; }
  // Where objects of `kind` in namespace `space` are kept. nullptr: not watched.
  k8s::Store* store(Kind kind, const std::string& space);

  // nullptr when no ComputeDomain has the UID.
  k8s::ObjectPtr domain(const std::string& uid) const;
  Observed observe(const k8s::ObjectPtr& object) const;  // a ComputeDomain
  Remains remains(const DomainUid& uid) const;
  Inventory inventory() const;

  // Why the caches are not filled or not up to date, one sentence per cause; empty when all is
  // well.
  std::vector<std::string> troubles() const;
  bool ready() const;

private:
  using Informers = std::deque<k8s::Informer>;

  void watch_daemons(asio::any_io_executor executor, k8s::Client& client, Time& time);
  void queue_by_label(k8s::Store& store, Pace pace);
  void queue_template(const k8s::ObjectPtr& object);
  std::vector<k8s::ObjectPtr> of(const Informers& informers, const std::string& uid) const;
  std::vector<k8s::ObjectPtr> daemon_sets_of(const DomainUid& uid) const;
  std::vector<k8s::ObjectPtr> templates_of(const DomainUid& uid) const;
  std::vector<const k8s::Informer*> all() const;

  Settings settings_;
  k8s::Informer domains_;
  k8s::Informer templates_;
  // One for each managed namespace, in the order of Settings::spaces.
  Informers daemon_sets_;
  Informers cliques_;
  Informers pods_;
  Informers nodes_;  // one, or none
  std::function<void(std::string, Pace)> queue_;
};

}  // namespace nvdra::roles::controller
