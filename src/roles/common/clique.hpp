// The members of a domain, as daemons write them into the API: `daemons` of a ComputeDomainClique
// (cluster-side.md 3.2) or, with the gate ComputeDomainCliques off, `status.nodes` of the
// ComputeDomain (3.1). Both lists hold the same facts under slightly different keys.
#pragma once

#include "base/ids.hpp"
#include "k8s/object.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::roles {

enum class MemberList {
  clique_daemons,  // /daemons of a ComputeDomainClique, keyed by nodeName
  domain_nodes,    // /status/nodes of a ComputeDomain, keyed by name
};

struct Member {
  NodeName node;
  std::string ip;
  CliqueId clique;
  std::int64_t index = -1;  // slot in the clique; -1 = none (a node without fabric)
  bool ready = false;
  std::size_t position = 0;  // in the array; for patches that address the entry
};

struct Members {
  std::vector<Member> all;            // in the order of the array
  std::vector<std::string> findings;  // entries that were skipped, each named with its reason

  const Member* of(const NodeName& node) const;
};

// Never fails: an entry without a node name, or one that repeats a node name, is skipped and named
// (the first one of a name counts). A missing list is an empty one. A missing status is NotReady, a
// missing index is -1.
Members read_members(const Json& object, MemberList list);

// The entry of the array as it is written.
Json member_entry(const Member& member, MemberList list);

// Where the array stands, as a JSON pointer: "/daemons" or "/status/nodes".
std::string_view members_pointer(MemberList list);

// JSON patch operations that change the entry at member.position, each guarded by a `test` that the
// entry still belongs to member.node. They hold whatever else changes in the object, as long as the
// entry keeps its place.
JsonArray set_status_patch(const Member& member, MemberList list, bool ready);
JsonArray replace_patch(const Member& member, MemberList list);
JsonArray remove_patch(const Member& member, MemberList list);
// A JSON patch operation that fails when the object is not the version that was read.
Json version_test(const k8s::Object& object);
// Appends the entry, or makes the array with it. `guard` is a `test` that fails once another member
// may have taken the index.
JsonArray append_patch(const k8s::Object& object, const Member& member, MemberList list,
                       Json guard);

// The lowest index >= 0 that no member (of member.clique's kind: all of `members`) has and that is
// below `limit`; nullopt when all are taken.
std::optional<std::int64_t> lowest_free_index(const std::vector<Member>& members,
                                              std::int64_t limit);

// The clique ID of a clique object: its name's, "<domain>.<clique>", by which daemons and plugins
// find it; the label, which anybody can edit, says it only for an object of another name. "" =
// unknown.
CliqueId clique_of(const k8s::Object& clique);
// The domain that the object's label names; "" when it has none.
DomainUid domain_of(const k8s::Object& object);

}  // namespace nvdra::roles
