// Store: a cache of one resource type. Written by its Reflector (and by whoever notes an own
// write); read by many. Readers get shared_ptr<const Object>.
#pragma once

#include "base/event.hpp"
#include "k8s/object.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace nvdra::k8s {

class Store {
public:
  // What changed: old and new; one of them is nullptr at creation and deletion.
  using Handler = std::function<void(const ObjectPtr& before, const ObjectPtr& after)>;
  // The keys of an index under which an object is found.
  using IndexKeys = std::function<std::vector<std::string>(const Object&)>;

  explicit Store(asio::any_io_executor executor);

  // Before the reflector starts. Handlers run on the loop, synchronously, in order of addition.
  void add_index(std::string name, IndexKeys keys);
  void on_change(Handler handler);

  ObjectPtr get(const ObjectKey& key) const;  // nullptr if absent
  std::vector<ObjectPtr> all() const;         // sorted by key
  std::vector<ObjectPtr> by_index(std::string_view index, std::string_view key) const;
  std::size_t size() const { return objects_.size(); }

  // Ready once the first list has been stored.
  bool ready() const { return ready_; }
  Async<void> wait_ready();
  // Counts every change; for coroutines that wait for a condition of their own:
  //   for (seen = store.changes().count(); !condition(); seen = co_await
  //   store.changes().wait(seen))
  Event& changes() { return changes_; }

  // The reflector's: a full list replaces everything at once (handlers see only differences).
  void replace(std::vector<Object> items);
  // An older resourceVersion than the stored one is ignored.
  void put(Object object);
  void erase(const ObjectKey& key, std::string_view uid = {});
  // Own writes: the server's answer to our create/patch is visible at once, so that the next
  // reconcile does not act on the past. Kept until the watch shows the object at this or a newer
  // version, dropped when a list or a delete event says that it is gone.
  void note_written(Object object) { put(std::move(object)); }
  void note_deleted(const ObjectKey& key, std::string_view uid);

private:
  void index(const ObjectKey& key, const Object& object, bool add);
  void changed(const ObjectPtr& before, const ObjectPtr& after);

  struct Index {
    IndexKeys keys;
    std::multimap<std::string, ObjectKey, std::less<>> entries;
  };
  std::map<ObjectKey, ObjectPtr> objects_;
  std::map<std::string, Index, std::less<>> indexes_;
  std::vector<Handler> handlers_;
  Event changes_;
  bool ready_ = false;
};

}  // namespace nvdra::k8s
