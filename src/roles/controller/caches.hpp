// What the controller watches, and which ComputeDomain an event concerns.
#pragma once

#include "base/task_group.hpp"
#include "k8s/informer.hpp"
#include "roles/controller/plan.hpp"

#include <functional>
#include <string>
#include <vector>

namespace nvdra::roles::controller {

// Keys of the work queue are UIDs of ComputeDomains. All templates of the cluster are watched, not
// only labelled ones: a name that somebody else holds must be seen to become free (W-C8).
class Caches {
public:
  Caches(asio::any_io_executor executor, k8s::Client& client, Time& time, Settings settings);

  // `queue` is called with every UID that an event concerns.
  void on_event(std::function<void(std::string uid)> queue);
  void start(TaskGroup& tasks);
  Async<void> wait_ready();

  k8s::Store& domains() { return domains_.store; }
  const k8s::Store& domains() const { return domains_.store; }
  k8s::Store& templates() { return templates_.store; }

  // nullptr when no ComputeDomain has the UID.
  k8s::ObjectPtr domain(const std::string& uid) const;
  Observed observe(const k8s::ObjectPtr& object) const;  // a ComputeDomain
  std::vector<k8s::ObjectPtr> templates_of(const DomainUid& uid) const;
  // UIDs of labelled objects that no ComputeDomain has: candidates for the orphans' clean-up.
  std::vector<std::string> unknown_uids() const;

  // Why the caches are not filled or not up to date, one sentence per cause; empty when all is
  // well.
  std::vector<std::string> troubles() const;
  bool ready() const;

private:
  void queue_template(const k8s::ObjectPtr& object);

  k8s::Informer domains_;
  k8s::Informer templates_;
  std::function<void(std::string)> queue_;
};

}  // namespace nvdra::roles::controller
