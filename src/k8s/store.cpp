#include "k8s/store.hpp"

#include <cstdlib>

namespace nvdra::k8s {
namespace {

// Deletions remembered for answers that are still under way; those take seconds.
constexpr std::size_t remembered_deletions = 1024;

}  // namespace

Store::Store(asio::any_io_executor executor) : changes_(std::move(executor)) {}

void Store::add_index(std::string name, IndexKeys keys) {
  Index& made = indexes_[std::move(name)];
  made.keys = std::move(keys);
}

void Store::on_change(Handler handler) {
  handlers_.push_back(std::move(handler));
}

ObjectPtr Store::get(const ObjectKey& key) const {
  auto at = objects_.find(key);
  return at == objects_.end() ? nullptr : at->second;
}

std::vector<ObjectPtr> Store::all() const {
  std::vector<ObjectPtr> found;
  found.reserve(objects_.size());
  for (const auto& [key, object] : objects_) found.push_back(object);
  return found;
}

std::vector<ObjectPtr> Store::by_index(std::string_view index, std::string_view key) const {
  auto at = indexes_.find(index);
  if (at == indexes_.end()) std::abort();
  std::vector<ObjectPtr> found;
  auto entry = at->second.entries.find(key);
  if (entry == at->second.entries.end()) return found;
  for (const ObjectKey& name : entry->second) found.push_back(objects_.at(name));
  return found;
}

Async<void> Store::wait_ready() {
  while (!ready_) co_await changes_.wait(changes_.count());
}

void Store::replace(std::vector<Object> items, std::string_view version) {
  Objects next = merge(std::move(items), version);
  Objects old = std::exchange(objects_, std::move(next));
  for (auto& [name, made] : indexes_) made.entries.clear();
  for (const auto& [key, object] : objects_) index(object, true);
  bool news = !std::exchange(ready_, true);

  for (const auto& [key, before] : old) {
    ObjectPtr after = get(key);
    if (after == before) continue;
    news = true;
    tell(before, after);
  }
  for (const auto& [key, after] : objects_) {
    if (old.contains(key)) continue;
    news = true;
    tell(nullptr, after);
  }
  if (news) changes_.notify();
}

ObjectPtr Store::kept(Object object) const {
  if (trim_) return std::make_shared<const Object>(Object(trim_(object.json())));
  return std::make_shared<const Object>(std::move(object));
}

// The list, except where our own writes are newer. Objects that have not changed stay the same.
Store::Objects Store::merge(std::vector<Object> items, std::string_view version) {
  auto outlives = [&](const std::string& noted) {
    return !version.empty() && newer(noted, version);
  };
  std::erase_if(noted_, [&](const auto& noted) { return !outlives(noted.second); });
  Objects next;
  for (const auto& [key, noted] : noted_) next[key] = objects_.at(key);
  for (Object& item : items) {
    ObjectKey key = item.key();
    if (hidden(item) || next.contains(key)) continue;
    ObjectPtr before = get(key);
    bool same = before && before->uid() == item.uid() && before->version() == item.version();
    next[key] = same ? before : kept(std::move(item));
  }
  // A noted deletion hides old versions from one list only: the server has the last word.
  std::erase_if(gone_, [](const auto& entry) { return !entry.second.hides.empty(); });
  std::erase_if(graves_, [&](const std::string& uid) { return !gone_.contains(uid); });
  return next;
}

void Store::put(Object object) {
  if (hidden(object)) return;
  ObjectKey key = object.key();
  ObjectPtr before = get(key);
  if (before && newer(before->version(), object.version())) return;
  noted_.erase(key);
  if (gone_.erase(std::string(object.uid())) > 0) std::erase(graves_, object.uid());
  if (before && before->version() == object.version() && before->uid() == object.uid()) return;
  set(key, kept(std::move(object)));
}

void Store::erase(const ObjectKey& key, std::string_view uid) {
  ObjectPtr before = get(key);
  if (!uid.empty()) bury(std::string(uid), {});
  if (!before || (!uid.empty() && before->uid() != uid)) return;
  noted_.erase(key);
  bury(std::string(before->uid()), {});
  set(key, nullptr);
}

void Store::passed(std::string_view version) {
  for (auto noted = noted_.begin(); noted != noted_.end();) {
    if (newer(noted->second, version)) {
      ++noted;
      continue;
    }
    ObjectKey key = noted->first;
    noted = noted_.erase(noted);
    set(key, nullptr);
  }
}

void Store::note_written(Object object) {
  if (gone_.contains(object.uid())) return;
  ObjectKey key = object.key();
  ObjectPtr before = get(key);
  if (before && !newer(object.version(), before->version())) return;
  noted_[key] = object.version();
  set(key, kept(std::move(object)));
}

void Store::note_deleted(const ObjectKey& key, std::string_view uid) {
  ObjectPtr before = get(key);
  if (!before || before->uid() != uid) return;
  bury(std::string(uid), {std::string(before->version())});
  noted_.erase(key);
  set(key, nullptr);
}

void Store::set(const ObjectKey& key, ObjectPtr after) {
  ObjectPtr before = get(key);
  if (before) index(before, false);
  if (after) {
    objects_[key] = after;
    index(after, true);
  } else {
    objects_.erase(key);
  }
  tell(before, after);
  changes_.notify();
}

void Store::index(const ObjectPtr& object, bool add) {
  ObjectKey name = object->key();
  for (auto& [title, made] : indexes_) {
    for (const std::string& key : made.keys(*object)) {
      std::set<ObjectKey>& entry = made.entries[key];
      if (add) {
        entry.insert(name);
      } else {
        entry.erase(name);
      }
      if (entry.empty()) made.entries.erase(key);
    }
  }
}

void Store::tell(const ObjectPtr& before, const ObjectPtr& after) {
  for (const Handler& handler : handlers_) handler(before, after);
}

void Store::bury(std::string uid, Gone gone) {
  auto [at, added] = gone_.insert_or_assign(uid, std::move(gone));
  (void)at;
  if (!added) return;
  graves_.push_back(std::move(uid));
  if (graves_.size() <= remembered_deletions) return;
  gone_.erase(graves_.front());
  graves_.pop_front();
}

// The server's news of an object that is noted as deleted, from before the deletion.
bool Store::hidden(const Object& object) const {
  auto at = gone_.find(object.uid());
  return at != gone_.end() && !at->second.hides.empty() &&
         !newer(object.version(), at->second.hides);
}

}  // namespace nvdra::k8s
