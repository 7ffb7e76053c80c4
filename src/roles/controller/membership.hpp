// Who belongs to a domain, who is ready, and what is waited for: one computation over all
// namespaces, cliques and daemons (cluster-side.md 4.8, 4.9; newer.md A10, A11; W-C1, W-C4, W-C16
// to W-C18, W-C22). Pure.
//
// Where members come from
//   * entries of the domain's cliques;
//   * entries of status.nodes that daemons wrote themselves: those whose gate ComputeDomainCliques
//   is
//     off, or that are older than it. They are kept as they stand, never rewritten;
//   * daemon pods on nodes without fabric: clique "", index -1.
// Each node counts once: of two entries of one node, the one whose clique its pod names.
//
// An entry that no daemon pod backs is removed only on proof: the cached pods lack it, and so does
// a live list made afterwards. A pod backs an entry if it is one of this domain in the same
// namespace and on the same node, and its clique label is missing or that of the entry. That a pod
// is not ready, or has another address, is no reason.
//
// A member is ready if its entry says so and nothing speaks against it: its node is not Ready, its
// pod is being deleted, its container does not run, or its readiness probe has begun to fail.
#pragma once

#include "roles/common/clique.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::roles::controller {

struct Seen {
  k8s::ObjectPtr domain;
  std::vector<k8s::ObjectPtr> cliques;
  std::vector<k8s::ObjectPtr> pods;
  std::vector<k8s::ObjectPtr> nodes;  // that carry the domain's label
  // All daemon pods of the domain as the server listed them just now; nullopt = not asked.
  std::optional<std::vector<k8s::ObjectPtr>> live_pods;
};

struct Waiting {
  NodeName node;
  std::string why;       // "pod a/b cannot pull image x"
  bool trouble = false;  // it will not pass by itself
};

struct Stale {
  k8s::ObjectPtr clique;
  std::vector<Member> members;  // proven to have no pod
};

struct Membership {
  std::vector<Member> nodes;                // status.nodes as it should be
  std::vector<Waiting> waiting;             // sorted by node; empty = every known daemon is ready
  std::size_t ready = 0;                    // members that are
  std::size_t known = 0;                    // members, and nodes whose daemon is expected
  std::map<CliqueId, std::size_t> cliques;  // → members there, without those that have no fabric
  std::vector<Stale> stale;
  bool doubtful = false;              // an entry has no pod in the cache: a live list must judge
  std::vector<std::string> findings;  // entries that make no sense
};

// `max_nodes` is the number of slots of one clique.
Membership assess(const Seen& seen, std::int64_t max_nodes);

}  // namespace nvdra::roles::controller
