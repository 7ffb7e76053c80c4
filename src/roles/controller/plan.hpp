// What to do for one ComputeDomain: a pure function of what was seen (cluster-side.md 4.6, 4.7).
// The reconciler performs the actions in order and plans again until none is left, so every plan
// starts from what the server answered.
//
// Rules
//   * A finalizer is never added to an object that is being deleted.
//   * An object is ours only if made_for() / daemon_set_made_for() says so, and it stands where we
//     make it; a foreign one, or a copy, is never adopted, changed or deleted (W-S3).
//   * The workload template comes first: while its name is taken nothing else is created (W-C8).
//   * Deletion needs no waiting of ours: delete, take our finalizer away, each object for itself,
//   and
//     when nothing is left take it from the ComputeDomain (W-C2, W-C3, W-C6).
//   * A template's spec cannot be changed, so drift is repaired by deleting and creating it again;
//     claims that were made from it are untouched.
//   * A DaemonSet's pods are never replaced under a running workload unless that was asked for: an
//     outdated one is changed while it has no pods, or with Settings::roll_out; otherwise it is
//     reported (W-C5).
//
// plan.cpp chooses, plan_workload.cpp does what both modes share, plan_daemons.cpp the objects of
// the daemons, plan_status.cpp what is said about them.
#pragma once

#include "roles/controller/daemon_set.hpp"
#include "roles/controller/membership.hpp"
#include "roles/controller/objects.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace nvdra::roles::controller {

enum class Kind { domain, claim_template, daemon_set, clique, node };

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
// A JSON patch that carries its own guard.
struct Amend {
  Kind kind;
  k8s::ObjectPtr object;
  Json patch;
};
// Takes the domain's label from the nodes, each guarded by the label's value, several at once
// (W-C13).
struct Unlabel {
  DomainUid uid;
  std::vector<k8s::ObjectPtr> nodes;
};
using Action = std::variant<Create, Delete, Release, Mark, Amend, Unlabel>;

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
  // status.nodes and status.nodeSummary; nullopt: leave them alone.
  std::optional<std::vector<Member>> nodes = {};
  std::string node_summary = {};
  bool doubtful = false;  // an entry is to be judged by a live list of the daemon pods
};

struct Settings {
  ImexMode mode = ImexMode::driver_managed;
  std::string resource_version;  // of resource.k8s.io
  DaemonShape daemons = {};
  bool dns_names = true;  // gate IMEXDaemonsWithDNSNames
  bool roll_out = false;  // outdated DaemonSets are changed although pods run
  // hostManaged: remove what driverManaged left behind (W-C19).
  bool clean_up_other_mode = false;
  // The driver's namespace and the additional ones.
  std::vector<std::string> spaces = {};

  // Whether daemons' objects are watched and worked on at all.
  bool manages_daemons() const { return mode == ImexMode::driver_managed || clean_up_other_mode; }
};

struct Observed {
  k8s::ObjectPtr domain;
  // Whatever has the wanted template's namespace and name, ours or not.
  k8s::ObjectPtr occupant;
  // "namespace/name" of the ComputeDomain that `occupant` was made for, if it is another one's.
  std::string occupant_owner;
  // All templates that made_for() this domain's UID, of both targets.
  std::vector<k8s::ObjectPtr> templates;
  // DaemonSets named for this domain in any managed namespace, ours or not.
  std::vector<k8s::ObjectPtr> daemon_sets = {};
  std::vector<k8s::ObjectPtr> cliques = {};
  std::vector<k8s::ObjectPtr> pods = {};
  std::vector<k8s::ObjectPtr> nodes = {};
  std::optional<std::vector<k8s::ObjectPtr>> live_pods = {};
};

Plan plan_domain(const Observed& observed, const Settings& settings);

// Of a UID that no ComputeDomain has (proven by a live list): what is left.
struct Remains {
  DomainUid uid;
  std::vector<k8s::ObjectPtr> templates;
  std::vector<k8s::ObjectPtr> daemon_sets = {};
  std::vector<k8s::ObjectPtr> nodes = {};
};
Plan plan_orphans(const Remains& remains, const Settings& settings);

}  // namespace nvdra::roles::controller
