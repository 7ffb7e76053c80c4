// Garbage collection by owner references.
#include "sandbox/controllers_list.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view foreground = "foregroundDeletion";
constexpr std::string_view orphan = "orphan";

struct Place {
  const Resource* resource;
  ObjectKey key;
  auto operator<=>(const Place&) const = default;
};

// Keys: {"", uid} of objects to look at.
class GarbageCollector final : public Controller {
public:
  using Controller::Controller;

  void changed(const Change& change) override {
    if (is(change, "events")) return;
    const Item& item = *subject(change);
    std::string uid(item.uid());
    if (change.before) forget_owners(uid, *change.before);
    if (change.after) {
      places_[uid] = {change.resource, item.key()};
      for (const Json& owner : owners_of(item))
        dependents_[std::string(text_or_empty(owner, "uid"))].insert(uid);
      if (!owners_of(item).empty() || item.deleting()) touch({"", uid});
    } else {
      places_.erase(uid);
      for (const Json& owner : owners_of(item))
        touch({"", std::string(text_or_empty(owner, "uid"))});
    }
    if (!change.after || item.deleting()) touch_dependents(uid);
  }

private:
  static const JsonArray& owners_of(const Item& item) {
    return array_or_empty(item.json(), "metadata/ownerReferences");
  }
  static bool has_finalizer(const Item& item, std::string_view name) {
    const JsonArray& list = array_or_empty(item.json(), "metadata/finalizers");
    return std::ranges::find(list, Json(name)) != list.end();
  }

  void forget_owners(const std::string& uid, const Item& item) {
    for (const Json& owner : owners_of(item)) {
      auto entry = dependents_.find(std::string(text_or_empty(owner, "uid")));
      if (entry == dependents_.end()) continue;
      entry->second.erase(uid);
      if (entry->second.empty()) dependents_.erase(entry);
    }
  }
  void touch_dependents(const std::string& uid) {
    auto entry = dependents_.find(uid);
    if (entry == dependents_.end()) return;
    for (const std::string& dependent : entry->second) touch({"", dependent});
  }

  ItemPtr item_of(std::string_view uid, const Resource*& resource) const {
    auto place = places_.find(std::string(uid));
    if (place == places_.end()) return nullptr;
    resource = place->second.resource;
    return registry_.find(*resource, place->second.key);
  }

  void reconcile(const ObjectKey& key) override {
    const Resource* resource = nullptr;
    ItemPtr item = item_of(key.name, resource);
    if (!item) return;
    if (item->deleting()) return finish(*resource, item);
    collect(*resource, item);
  }

  // An object that is not being deleted: are its owners there?
  void collect(const Resource& resource, const ItemPtr& item) {
    JsonArray alive;
    bool waiting = false;  // an owner waits in foreground for this object's end
    for (const Json& reference : owners_of(*item)) {
      const Resource* owner_resource = nullptr;
      ItemPtr owner = item_of(text_or_empty(reference, "uid"), owner_resource);
      bool reachable = owner && (owner->space().empty() || owner->space() == item->space());
      if (!reachable) continue;
      if (owner->deleting() && has_finalizer(*owner, foreground))
        waiting = true;
      else
        alive.push_back(reference);
    }
    std::size_t named = owners_of(*item).size();
    if (named == 0 || alive.size() == named) return;
    if (alive.empty()) {
      RemoveOptions options{.uid = std::string(item->uid()),
                            .propagation = waiting ? "Foreground" : ""};
      Result<Removal> removal = registry_.remove(resource, item->key(), options);
      (void)removal;  // gone already
    } else if (!waiting) {
      set_owners(resource, item, std::move(alive));
    }
  }

  void set_owners(const Resource& resource, const ItemPtr& item, JsonArray owners) {
    Json patch = JsonObject{{"metadata", JsonObject{{"ownerReferences", std::move(owners)}}}};
    Result<ItemPtr> written = registry_.patch(resource, item->key(), patch, PatchForm::merge);
    (void)written;  // gone already
  }

  // An object that is being deleted in foreground, or leaves its dependents behind.
  void finish(const Resource& resource, const ItemPtr& item) {
    std::vector<Place> blocking = dependents(*item);
    if (has_finalizer(*item, orphan)) {
      for (const Place& place : blocking) leave_behind(place, item->uid());
      return drop_finalizer(resource, *item, orphan);
    }
    if (has_finalizer(*item, foreground) && blocking.empty())
      drop_finalizer(resource, *item, foreground);
  }

  std::vector<Place> dependents(const Item& owner) const {
    std::vector<Place> found;
    auto entry = dependents_.find(std::string(owner.uid()));
    if (entry == dependents_.end()) return found;
    for (const std::string& uid : entry->second)
      if (auto place = places_.find(uid); place != places_.end()) found.push_back(place->second);
    return found;
  }

  void leave_behind(const Place& place, std::string_view owner) {
    ItemPtr item = registry_.find(*place.resource, place.key);
    if (!item) return;
    JsonArray others;
    for (const Json& reference : owners_of(*item))
      if (text_or_empty(reference, "uid") != owner) others.push_back(reference);
    set_owners(*place.resource, item, std::move(others));
  }

  void drop_finalizer(const Resource& resource, const Item& item, std::string_view name) {
    JsonArray others;
    for (const Json& finalizer : array_or_empty(item.json(), "metadata/finalizers"))
      if (finalizer != Json(name)) others.push_back(finalizer);
    Json patch = JsonObject{{"metadata", JsonObject{{"finalizers", std::move(others)}}}};
    Result<ItemPtr> written = registry_.patch(resource, item.key(), patch, PatchForm::merge);
    (void)written;  // gone already
  }

  std::map<std::string, Place> places_;                      // uid → where
  std::map<std::string, std::set<std::string>> dependents_;  // owner's uid → uids
};

}  // namespace

std::unique_ptr<Controller> make_garbage_collector(Registry& registry) {
  return std::make_unique<GarbageCollector>(registry);
}

}  // namespace nvdra::sandbox
