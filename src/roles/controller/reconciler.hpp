// Performs plans: observe, plan, act, plan again until nothing is left to do, then write the
// status.
#pragma once

#include "k8s/events.hpp"
#include "k8s/reconcile_loop.hpp"
#include "roles/controller/caches.hpp"
#include "roles/controller/performer.hpp"

namespace nvdra::roles::controller {

class Reconciler {
public:
  // All of them must outlive the reconciler.
  Reconciler(k8s::Client& client, Time& time, k8s::EventRecorder& events, Caches& caches,
             Settings settings);

  // Once, when the caches are filled: tells the log of what another mode left behind (level 0), and
  // of clean-up (level 6), and each ComputeDomain whose workload template is made again.
  void tell_at_start();

  // Called by the reconcile loop for one UID, never twice at once for the same. Idempotent. Sees
  // its own writes in the caches. An error means: try again later; nothing is lost.
  Async<Result<k8s::Again>> reconcile(std::string uid);

private:
  Async<Result<k8s::Again>> reconcile_domain(std::string uid);
  Async<Result<k8s::Again>> clean_orphans(std::string uid);
  Async<Result<bool>> domain_exists(std::string uid);  // asks the server, not the cache

  // The first action that fails ends it; a failure that a human must cure goes to the status too.
  Async<Result<void>> perform(std::string uid, std::vector<Action> actions);
  // The daemon pods of the domain, asked from the server in each managed namespace.
  Async<Result<std::vector<k8s::ObjectPtr>>> list_pods(std::string uid);
  // Says when to look again: a change of mere words waits a moment, for most do not last.
  Async<Result<k8s::Again>> write_status(std::string uid, Plan plan);
  Async<Result<void>> send_status(k8s::ObjectPtr object, Plan plan, Json patch);
  // True once only words have differed for a while. `urgent`: at once.
  bool settled_words(const std::string& uid, bool urgent);
  // An Event that a domain waits for its daemons comes only if it goes on: most are ready soon.
  k8s::Again tell_of_waiting(const k8s::Object& domain, const Plan& plan);
  void tell(const k8s::Object& domain, const Plan& plan);
  void tell_of_use(const std::string& uid, const Action& action);

  k8s::Client& client_;
  Time& time_;
  k8s::EventRecorder& events_;
  Caches& caches_;
  Settings settings_;
  Performer performer_;
  struct Waits {
    std::optional<Instant> words = {};    // since when only the words of its conditions differ
    std::optional<Instant> daemons = {};  // since when it has been waiting for daemons
    bool told = false;                    // … and an Event has said so
  };
  std::map<std::string, Waits> waits_;  // by UID
};

}  // namespace nvdra::roles::controller
