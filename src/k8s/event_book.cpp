#include "k8s/event_book.hpp"

#include <algorithm>

namespace nvdra::k8s {
namespace {

// Makes room by forgetting what was seen longest ago.
template <class Map>
void bound(Map& map, std::size_t most) {
  if (map.size() <= most) return;
  map.erase(std::ranges::min_element(map, {}, [](const auto& entry) { return entry.second.last; }));
}

}  // namespace

bool Budget::take(Instant now) {
  while (left_ < shape_.burst && now - since_ >= shape_.refill) {
    ++left_;
    since_ += shape_.refill;
  }
  if (left_ == shape_.burst) since_ = now;
  if (left_ == 0) return false;
  --left_;
  return true;
}

EventBook::Decision EventBook::decide(const std::string& object, const std::string& event,
                                      std::string name, Moment at) {
  std::string key = object + '\n' + event;
  if (auto known = seen_.find(key); known != seen_.end()) {
    Seen& seen = known->second;
    seen.last = at.now;
    ++seen.entry.count;
    return {seen.budget.take(at.now) ? Send::raise : Send::nothing, seen.entry};
  }
  Spender& spender = objects_.try_emplace(object, Budget(shape_, at.now), at.now).first->second;
  spender.last = at.now;
  bool affordable = spender.budget.take(at.now);
  bound(objects_, remembered_);
  if (!affordable) return {Send::nothing, {}};
  Entry entry{std::move(name), 1, at.wall};
  seen_.emplace(key, Seen{entry, Budget(shape_, at.now), at.now});
  bound(seen_, remembered_);
  return {Send::create, std::move(entry)};
}

}  // namespace nvdra::k8s
