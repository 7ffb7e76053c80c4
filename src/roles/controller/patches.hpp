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

// Merge patch of the status subresource that makes the status say what `plan` found; nullopt when
// it says so already. Conditions of types that the controller does not own are kept.
std::optional<Json> status_patch(const k8s::Object& domain, const Plan& plan,
                                 WallClock::time_point now);

// The findings whose reason or message differs from what the ComputeDomain's conditions say: each
// is worth an Event.
std::vector<Finding> news(const k8s::Object& domain, const Plan& plan);

}  // namespace nvdra::roles::controller
