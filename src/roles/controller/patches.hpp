// The patches that the controller sends: pure, guarded, touching only what it owns.
#pragma once

#include "base/time.hpp"
#include "roles/controller/plan.hpp"

#include <optional>

namespace nvdra::roles::controller {

// JSON patch that takes our finalizer away, and nothing else (reports 149). Precondition: it has
// it.
Json release_patch(const k8s::Object& object);

// JSON patch that puts our finalizer and `labels` on the object, guarded by its resourceVersion.
Json mark_patch(const k8s::Object& object, const JsonObject& labels);

// JSON patch that takes the members away. Each step is guarded by the entry's node and address, so
// a daemon that has registered again keeps its entry, whatever else changed in the clique.
Json prune_patch(const Stale& stale);

struct StatusChange {
  Json patch;  // merge patch of the status subresource
  // False when only the words of a condition differ: worth writing if they stay so for a while.
  bool urgent = true;
};

// What makes the status say what `plan` found; nullopt when it says so already. Conditions of types
// that the controller does not own are kept. A patch that changes status.nodes is guarded by the
// resourceVersion, because daemons write there too (reports 40).
std::optional<StatusChange> status_patch(const k8s::Object& domain, const Plan& plan,
                                         WallClock::time_point now);

// The findings that are worth an Event: the reason differs from what the ComputeDomain's conditions
// say, or the message of a warning does.
std::vector<Finding> news(const k8s::Object& domain, const Plan& plan);

}  // namespace nvdra::roles::controller
