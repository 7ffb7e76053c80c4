// Performs the actions of a plan. Idempotent: what is done already, or gone already, is a success;
// what somebody else changed meanwhile is read again, and the next plan decides anew. Every answer
// of the server goes into the caches at once.
#pragma once

#include "roles/controller/caches.hpp"

namespace nvdra::roles::controller {

class Performer {
public:
  Performer(k8s::Client& client, Caches& caches, const Settings& settings)
      : client_(client), caches_(caches), settings_(settings) {}

  Async<Result<void>> perform(Action action);
  // What the server has now; noted in the caches, also that it is gone.
  Async<Result<void>> refresh(Kind kind, k8s::ObjectPtr object);

private:
  Async<Result<void>> act(Create action);
  Async<Result<void>> act(Delete action);
  Async<Result<void>> act(Release action);
  Async<Result<void>> act(Mark action);
  Async<Result<void>> act(Amend action);
  Async<Result<void>> act(Unlabel action);

  void note(Kind kind, k8s::Object object);
  void note_gone(Kind kind, const k8s::Object& object);
  k8s::ResourceType type_of(Kind kind) const;

  k8s::Client& client_;
  Caches& caches_;
  const Settings& settings_;
};

}  // namespace nvdra::roles::controller
