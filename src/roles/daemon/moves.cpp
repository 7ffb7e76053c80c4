#include "roles/daemon/moves.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::daemon {
namespace {

Json owner_of(const Self& self) {
  return {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", self.pod_name}, {"uid", self.pod_uid}};
}

Json new_clique(const Place& place, const Self& self, const Member& own) {
  return {{"apiVersion", nvidia_api_version()},
          {"kind", place.type.kind},
          {"metadata",
           {{"name", place.key.name},
            {"namespace", place.key.space},
            {"labels", {{domain_label, self.domain.value}, {clique_label, self.clique.value}}},
            {"ownerReferences", JsonArray{owner_of(self)}}}},
          {"daemons", JsonArray{member_entry(own, place.list)}}};
}

bool owns(const k8s::Object& object, const Self& self) {
  return std::ranges::any_of(
      array_or_empty(object.json(), "metadata/ownerReferences"),
      [&](const Json& owner) { return text_or_empty(owner, "uid") == self.pod_uid; });
}

// The clique lives as long as a pod of its daemons does.
void add_owner(JsonArray& patch, const k8s::Object& object, const Self& self) {
  if (owns(object, self)) return;
  const bool some = !array_or_empty(object.json(), "metadata/ownerReferences").empty();
  Json owner = owner_of(self);
  if (!some) owner = JsonArray{std::move(owner)};
  patch.push_back({{"op", "add"},
                   {"path", some ? "/metadata/ownerReferences/-" : "/metadata/ownerReferences"},
                   {"value", std::move(owner)}});
}

JsonArray guarded(const k8s::Object& object, JsonArray patch) {
  patch.insert(patch.begin(), version_test(object));
  return patch;
}

std::optional<Stuck> foreign(const k8s::Object* object, const Place& place, const Self& self) {
  if (place.list == MemberList::domain_nodes) {
    if (!object) return Stuck{place.text() + " does not exist"};
    if (object->uid() != self.domain.value)
      return Stuck{fmt::format("{} is another one (uid {}) than the one of this daemon (uid {})",
                               place.text(), object->uid(), self.domain.value)};
    return std::nullopt;
  }
  // What this pod has joined, it keeps for its own, whatever has become of the labels.
  if (!object || domain_of(*object) == self.domain || owns(*object, self)) return std::nullopt;
  return Stuck{fmt::format(
      "{} has the label {}=\"{}\", not this domain's \"{}\": it was not made by a daemon of this "
      "domain, so delete it or set the label right",
      place.text(), domain_label, domain_of(*object).value, self.domain.value)};
}

// Labels that somebody has edited: by them the controller finds the clique.
std::optional<Patch> restore_labels(const k8s::Object& object, const Place& place,
                                    const Self& self) {
  if (place.list == MemberList::domain_nodes) return std::nullopt;
  bool right = object.label_text(domain_label) == self.domain.value &&
               object.label_text(clique_label) == self.clique.value;
  if (right) return std::nullopt;
  JsonObject labels = object_or_empty(object.json(), "metadata/labels");
  labels[domain_label] = self.domain.value;
  labels[clique_label] = self.clique.value;
  return Patch{
      guarded(object,
              {{{"op", "add"}, {"path", "/metadata/labels"}, {"value", std::move(labels)}}}),
      "restore the labels"};
}

Stuck all_taken(const Circle& circle, const Place& place, const Self& self) {
  std::string nodes;
  for (const Member& member : circle.members)
    nodes += (nodes.empty() ? "" : ", ") + member.node.value;
  return Stuck{fmt::format(
      "all {} slots of {} are taken (by {}), so node {} cannot join; a clique takes at most "
      "MAX_NODES_PER_IMEX_DOMAIN nodes, a setting of the controller",
      self.slots, place.text(), nodes, self.node.value)};
}

// Whoever joins a clique becomes an owner of it, too. So owners that are still the same mean that
// no index was taken meanwhile, and members that only turn Ready are not in the way. (One that
// joins again is an owner already: should it be overlooked, the later one of the two gives way.)
Json nobody_joined(const k8s::Object& object, const Place& place, const Self& self) {
  const JsonArray& owners = array_or_empty(object.json(), "metadata/ownerReferences");
  if (place.list == MemberList::domain_nodes || owners.empty() || owns(object, self))
    return version_test(object);
  return {{"op", "test"}, {"path", "/metadata/ownerReferences"}, {"value", owners}};
}

Move join(const k8s::Object& object, const Circle& circle, const Place& place, const Self& self) {
  const auto index = lowest_free_index(circle.members, self.slots);
  if (!index) return all_taken(circle, place, self);
  const Member own{self.node, self.address, self.clique, *index, false};
  JsonArray patch = append_patch(object, own, place.list, nobody_joined(object, place, self));
  if (place.list == MemberList::clique_daemons) add_owner(patch, object, self);
  const auto starting = std::ranges::count(circle.members, false, &Member::ready);
  return Patch{std::move(patch), fmt::format("join with index {}", *index),
               static_cast<int>(starting)};
}

// Of two members with one index the later one in the list gives way.
bool index_is_good(const Circle& circle, const Member& own, std::int64_t slots) {
  if (own.index < 0 || own.index >= slots) return false;
  return std::ranges::none_of(circle.members, [&](const Member& other) {
    return other.position < own.position && other.index == own.index;
  });
}

}  // namespace

const Member* Circle::own(const Self& self) const {
  auto found = std::ranges::find(members, self.node, &Member::node);
  return found == members.end() ? nullptr : &*found;
}

Circle circle_of(const k8s::Object& object, MemberList list, const CliqueId& clique) {
  Circle circle{read_members(object.json(), list).all};
  std::erase_if(circle.members, [&](const Member& member) { return member.clique != clique; });
  return circle;
}

bool is_member(const k8s::Object& object, const Place& place, const Self& self) {
  const Circle circle = circle_of(object, place.list, self.clique);
  const Member* own = circle.own(self);
  return own && own->ip == self.address;
}

Move next_move(const k8s::Object* object, const Place& place, const Self& self, bool ready,
               bool take_over) {
  if (auto stuck = foreign(object, place, self)) return *std::move(stuck);
  if (!object)
    return Create{new_clique(place, self, {self.node, self.address, self.clique, 0, false})};
  if (auto labels = restore_labels(*object, place, self)) return *std::move(labels);

  const Circle circle = circle_of(*object, place.list, self.clique);
  const Members everybody = read_members(object->json(), place.list);
  const Member* own = everybody.of(self.node);
  if (!own) return join(*object, circle, place, self);
  const bool same_pod = own->ip == self.address;
  if (!same_pod && !take_over)
    return Stuck{fmt::format("the entry of node {} in {} is another pod's (at {}, not {})",
                             self.node.value, place.text(), own->ip, self.address),
                 true};

  Member wanted = *own;
  wanted.ip = self.address;
  wanted.clique = self.clique;
  const bool moved = own->clique != self.clique;
  if (moved || !index_is_good(circle, *own, self.slots)) {
    const auto index = lowest_free_index(circle.members, self.slots);
    if (!index) return all_taken(circle, place, self);
    wanted.index = *index;
    wanted.ready = false;
    return Patch{guarded(*object, replace_patch(wanted, place.list)),
                 fmt::format("take index {} instead of {}", wanted.index, own->index)};
  }
  const bool owner = place.list == MemberList::domain_nodes || owns(*object, self);
  if (!same_pod || !owner) {
    // Whatever the entry said was about another pod.
    wanted.ready = false;
    JsonArray patch = replace_patch(wanted, place.list);
    if (!owner) add_owner(patch, *object, self);
    return Patch{std::move(patch), fmt::format("take over the entry with index {}", own->index)};
  }
  if (own->ready != ready)
    return Patch{set_status_patch(*own, place.list, ready), ready ? "Ready" : "NotReady"};
  return Settled{};
}

Move last_move(const k8s::Object* object, const Place& place, const Self& self) {
  if (!object || foreign(object, place, self)) return Settled{};
  const Members everybody = read_members(object->json(), place.list);
  const Member* own = everybody.of(self.node);
  if (!own || own->ip != self.address) return Settled{};
  JsonArray patch = remove_patch(*own, place.list);
  patch.insert(
      patch.begin(),
      Json{{"op", "test"},
           {"path", fmt::format("{}/{}/ipAddress", members_pointer(place.list), own->position)},
           {"value", self.address}});
  return Patch{std::move(patch), "leave"};
}

}  // namespace nvdra::roles::daemon
