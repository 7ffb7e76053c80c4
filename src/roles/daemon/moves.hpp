// What a daemon does next about its entry in the list of members. Pure: object in, move out.
// (node-side.md 11.5, 11.6 and its weak spots 6, 7, 13 to 16; reports 40, 41, 46.)
#pragma once

#include "roles/common/clique.hpp"

#include <string>
#include <variant>

namespace nvdra::roles::daemon {

// Who writes.
struct Self {
  DomainUid domain;
  CliqueId clique;
  NodeName node;
  std::string address;  // the pod's
  std::string pod_name;
  std::string pod_uid;
  std::string pod_space;
  std::int64_t slots = 18;
};

// Where the members stand.
struct Place {
  MemberList list = MemberList::clique_daemons;
  k8s::ResourceType type;
  k8s::ObjectKey key;
  // Where the writes go: "" or "status".
  std::string subresource() const { return list == MemberList::domain_nodes ? "status" : ""; }
  std::string text() const { return type.kind + " " + key.text(); }
};

struct Settled {};
struct Create {
  Json object;
};
struct Patch {
  JsonArray operations;
  std::string what;  // for the log: "join with index 3"
  int crowd = 0;     // how many others are about to join, as far as can be seen
};
// Nothing can be done now; a change of the object is waited for.
struct Stuck {
  std::string sentence;
  // The entry is another pod's of this node. It is taken back when this lasts: the older of two
  // such pods is told to stop in that time.
  bool another_pod = false;
};

using Move = std::variant<Settled, Create, Patch, Stuck>;

// `object` is nullptr when it does not exist. `ready`: what the entry shall say. `take_over`: an
// entry of this node with another address is ours to change.
Move next_move(const k8s::Object* object, const Place& place, const Self& self, bool ready,
               bool take_over);

// Removes the entry of this node if it is this pod's (node, address); Settled when there is none.
Move last_move(const k8s::Object* object, const Place& place, const Self& self);

// The members that share this daemon's clique, in the order of the list, and own entry's index.
struct Circle {
  std::vector<Member> members;
  const Member* own(const Self& self) const;
};
Circle circle_of(const k8s::Object& object, MemberList list, const CliqueId& clique);
// This pod has an entry among them.
bool is_member(const k8s::Object& object, const Place& place, const Self& self);

}  // namespace nvdra::roles::daemon
