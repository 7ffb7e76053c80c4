// What controllers have in common.
#pragma once

#include "sandbox/store_registry.hpp"

#include <set>

namespace nvdra::sandbox {

// Notes the keys of objects that have to be looked at, and looks at them one by one. Level, not
// edge: reconcile() reads the world as it is. Failures (conflicts cannot happen on one loop) leave
// the key for the next change.
class Controller {
public:
  explicit Controller(Registry& registry) : registry_(registry) {}
  virtual ~Controller() = default;

  // Called by the feed: only touch() here.
  virtual void changed(const Change& change) = 0;
  // True when there was something to do.
  virtual bool work();

protected:
  void touch(ObjectKey key) { dirty_.insert(std::move(key)); }
  virtual void reconcile(const ObjectKey& key) = 0;

  const Resource& of(std::string_view qualified) const { return registry_.resource(qualified); }

  Registry& registry_;

private:
  std::set<ObjectKey> dirty_;
};

// The object after the change, or what it was before its deletion.
inline const ItemPtr& subject(const Change& change) {
  return change.after ? change.after : change.before;
}
inline bool is(const Change& change, std::string_view plural) {
  return change.resource->type.plural == plural && !change.resource->custom;
}

// {apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true}
Json controller_reference(const Item& owner);
// The uid of the owner that is the object's controller, or "".
std::string_view controller_uid(const Json& object);

// A node came, went, or changed in what decides where pods may run: labels, spec, conditions.
// (Its other status changes with every heartbeat.)
bool placement_changed(const Change& change);

bool is_terminal(const Json& pod);  // Succeeded or Failed
bool is_ready(const Json& pod);     // condition Ready is True

// Says something about an object, as an Event; the same again raises the count.
void record_event(Registry& registry, const Item& about, std::string_view type,
                  std::string_view reason, std::string_view message, std::string_view component);

// Sets one condition in status.conditions of `object`; lastTransitionTime only moves with status.
void set_condition(Json& object, JsonObject condition, std::string_view now);

// Writes the status of `object` if it differs.
void put_status(Registry& registry, const Resource& resource, const ItemPtr& item, Json object);

}  // namespace nvdra::sandbox
