// What to do for one ComputeDomain: a pure function of what was seen (cluster-side.md 4.6, 4.7).
// The reconciler performs the actions in order and plans again until none is left, so every plan
// starts from what the server answered.
//
// Rules
//   * A finalizer is never added to an object that is being deleted.
//   * An object is ours only if made_for() says so; a foreign one is never adopted, changed or
//   deleted.
//   * Deletion needs no waiting of ours: delete, take our finalizer away, and when nothing is left
//     take it from the ComputeDomain.
//   * A template's spec cannot be changed, so drift is repaired by deleting and creating it again;
//     claims that were made from it are untouched.
#pragma once

#include "roles/controller/objects.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace nvdra::roles::controller {

enum class Kind { domain, claim_template, daemon_set };

struct Create {
  Kind kind;
  Json object;
};
// With the object's UID as precondition. Gone already = success.
struct Delete {
  Kind kind;
  k8s::ObjectPtr object;
};
// Takes our finalizer away, guarded. Gone already = success.
struct Release {
  Kind kind;
  k8s::ObjectPtr object;
};
// Puts our finalizer and `labels` (back) on it, guarded by its resourceVersion.
struct Mark {
  Kind kind;
  k8s::ObjectPtr object;
  JsonObject labels;
};
using Action = std::variant<Create, Delete, Release, Mark>;

// One condition of the ComputeDomain, and the Event that tells of its change.
struct Finding {
  std::string type;  // "Ready", "TemplateReady", …
  bool holds = false;
  std::string reason;
  std::string message;
  bool warning = false;  // a human must act
};

struct Plan {
  std::vector<Action> actions;
  std::vector<Finding> findings;  // empty: leave the status alone
  bool ready = false;             // status.status
};

struct Settings {
  ImexMode mode = ImexMode::driver_managed;
  std::string resource_version;  // of resource.k8s.io
};

struct Observed {
  k8s::ObjectPtr domain;
  // Whatever has the wanted template's namespace and name, ours or not.
  k8s::ObjectPtr occupant;
  // "namespace/name" of the ComputeDomain that `occupant` was made for, if it is another one's.
  std::string occupant_owner;
  // All templates that made_for() this domain's UID, of both targets.
  std::vector<k8s::ObjectPtr> templates;
};

Plan plan_domain(const Observed& observed, const Settings& settings);

// For a UID that no ComputeDomain has (proven by a live list): what is left of it.
Plan plan_orphans(const std::vector<k8s::ObjectPtr>& templates, const Settings& settings);

}  // namespace nvdra::roles::controller
