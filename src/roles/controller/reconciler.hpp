// Performs plans: observe, plan, act, plan again until nothing is left to do, then write the
// status.
#pragma once

#include "k8s/events.hpp"
#include "k8s/reconcile_loop.hpp"
#include "roles/controller/caches.hpp"

namespace nvdra::roles::controller {

class Reconciler {
public:
  // All of them must outlive the reconciler.
  Reconciler(k8s::Client& client, Time& time, k8s::EventRecorder& events, Caches& caches,
             Settings settings);

  // Called by the reconcile loop for one UID, never twice at once for the same. Idempotent. Sees
  // its own writes in the caches. An error means: try again later; nothing is lost.
  Async<Result<k8s::Again>> reconcile(std::string uid);

private:
  Async<Result<k8s::Again>> reconcile_domain(std::string uid);
  Async<Result<k8s::Again>> clean_orphans(std::string uid);
  Async<Result<bool>> domain_exists(std::string uid);  // asks the server, not the cache

  Async<Result<void>> perform(Action action);
  Async<Result<void>> create(Create action);
  Async<Result<void>> remove(Delete action);
  Async<Result<void>> release(Release action);
  Async<Result<void>> mark(Mark action);
  Async<Result<void>> write_status(std::string uid, Plan plan);
  void tell(const k8s::Object& domain, const Plan& plan);

  k8s::ResourceType type_of(Kind kind) const;
  k8s::Store& store_of(Kind kind);

  k8s::Client& client_;
  Time& time_;
  k8s::EventRecorder& events_;
  Caches& caches_;
  Settings settings_;
};

}  // namespace nvdra::roles::controller
