// Store: a cache of one resource type. Written by its Reflector (and by whoever notes an own
// write); read by many. Readers get shared_ptr<const Object>.
//
// Own writes (note_written, note_deleted) are visible at once, so that the next reconcile does not
// act on the past. What the server shows is believed again as soon as it is as new:
//   * a noted object lives until the watch shows it or its deletion, or the watch has come past its
//     version without showing it, or a list at least as new lacks it;
//   * an answer that arrives after the watch has shown the object's deletion changes nothing;
//   * a noted deletion hides the versions known before it from late watch events and from the next
//     list; a newer version of the object (still there, with finalizers) is shown again.
#pragma once

#include "base/event.hpp"
#include "k8s/object.hpp"

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace nvdra::k8s {

class Store {
public:
  // What changed: old and new; one of them is nullptr at creation and deletion. An object that was
  // deleted and made again between two lists is one change with both.
  using Handler = std::function<void(const ObjectPtr& before, const ObjectPtr& after)>;
  // The keys of an index under which an object is found. Pure: asked again when the object leaves.
  using IndexKeys = std::function<std::vector<std::string>(const Object&)>;

  explicit Store(asio::any_io_executor executor);

  // Before the reflector starts. Handlers run on the loop, synchronously, in order of addition.
  // They see the store as it is after the change, and do not change it themselves.
  void add_index(std::string name, IndexKeys keys);
  void on_change(Handler handler);
  // What is kept of every object, noted ones too; metadata must survive but for what nobody reads.
  // Without it whole objects are kept.
  void keep(std::function<Json(const Json&)> trim) { trim_ = std::move(trim); }

  ObjectPtr get(const ObjectKey& key) const;  // nullptr if absent
  std::vector<ObjectPtr> all() const;         // sorted by key
  // Sorted by key. Aborts for a name that is not an index.
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
  // `version` is the list's; noted objects survive a list that is older than they are ("" =
  // newest).
  void replace(std::vector<Object> items, std::string_view version = {});
  // An older resourceVersion than the stored one is ignored.
  void put(Object object);
  // With `uid`, only that very object.
  void erase(const ObjectKey& key, std::string_view uid = {});
  // The watch has shown everything up to `version`.
  void passed(std::string_view version);

  // The server's answer to our create or patch.
  void note_written(Object object);
  // The server has said that the object is gone: not found, or deleted without finalizers.
  void note_deleted(const ObjectKey& key, std::string_view uid);

private:
  using Objects = std::map<ObjectKey, ObjectPtr>;
  struct Index {
    IndexKeys keys;
    std::map<std::string, std::set<ObjectKey>, std::less<>> entries;
  };
  // Objects that are known to be gone, by uid. `hides` = the newest version known then, for a noted
  // deletion; "" when the watch itself has shown the deletion.
  struct Gone {
    std::string hides;
  };

  ObjectPtr kept(Object object) const;
  Objects merge(std::vector<Object> items, std::string_view version);
  void set(const ObjectKey& key, ObjectPtr after);
  void index(const ObjectPtr& object, bool add);
  void tell(const ObjectPtr& before, const ObjectPtr& after);
  void bury(std::string uid, Gone gone);
  bool hidden(const Object& object) const;

  Objects objects_;
  std::map<ObjectKey, std::string> noted_;  // → version of our write, not yet shown by the server
  std::map<std::string, Gone, std::less<>> gone_;
  std::deque<std::string> graves_;  // keys of gone_, oldest first
  std::map<std::string, Index, std::less<>> indexes_;
  std::vector<Handler> handlers_;
  std::function<Json(const Json&)> trim_;
  Event changes_;
  bool ready_ = false;
};

}  // namespace nvdra::k8s
