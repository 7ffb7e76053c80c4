#include "sandbox/store_feed.hpp"

#include <algorithm>

namespace nvdra::sandbox {

bool Filter::matches(const Item& item) const {
  if (!space.empty() && item.space() != space) return false;
  if (!fields.empty() && !fields.matches_fields(item.json())) return false;
  return labels.empty() || labels.matches_labels(object_or_empty(item.json(), "metadata/labels"));
}

std::optional<FeedEvent> seen_through(const Filter& filter, const Change& change) {
  bool before = change.before && filter.matches(*change.before);
  bool after = change.after && filter.matches(*change.after);
  using Kind = FeedEvent::Kind;
  if (after) return FeedEvent{before ? Kind::modified : Kind::added, change.after, change.version};
  if (!before) return std::nullopt;
  if (!change.after) return FeedEvent{Kind::deleted, change.last, change.version};
  Json last = change.before->json();
  metadata_of(last)["resourceVersion"] = std::to_string(change.version);
  return FeedEvent{Kind::deleted, std::make_shared<Item>(std::move(last)), change.version};
}

Subscription::~Subscription() {
  auto channel = feed_.channels_.find(&resource_);
  if (channel != feed_.channels_.end()) channel->second.readers.remove(this);
}

std::optional<FeedEvent> Subscription::next() {
  if (events_.empty()) return std::nullopt;
  FeedEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void Subscription::offer(const Change& change, std::size_t backlog) {
  if (expired_) return;
  std::optional<FeedEvent> event = seen_through(filter_, change);
  if (!event) return;
  if (events_.size() >= backlog) {
    expired_ = true;
    events_.clear();
  } else {
    events_.push_back(*std::move(event));
  }
  wake_();
}

std::shared_ptr<Feed::Handler> Feed::on_change(Handler handler) {
  auto kept = std::make_shared<Handler>(std::move(handler));
  std::erase_if(handlers_, [](const auto& old) { return old.expired(); });
  handlers_.push_back(kept);
  return kept;
}

std::unique_ptr<Subscription> Feed::subscribe(const Resource& resource, Filter filter,
                                              std::uint64_t from, std::function<void()> wake) {
  if (from < oldest(resource)) return nullptr;
  Channel& channel = channels_[&resource];
  std::unique_ptr<Subscription> reader(
      new Subscription(*this, resource, std::move(filter), std::move(wake)));
  auto first = std::ranges::upper_bound(channel.history, from, {},
                                        [](const ChangePtr& change) { return change->version; });
  for (; first != channel.history.end(); ++first) {
    auto event = seen_through(reader->filter_, **first);
    if (event) reader->events_.push_back(*std::move(event));
  }
  channel.readers.push_back(reader.get());
  return reader;
}

void Feed::forget(std::uint64_t now) {
  forgotten_ = now;
  for (auto& [resource, channel] : channels_) channel.history.clear();
}

std::uint64_t Feed::oldest(const Resource& resource) const {
  auto channel = channels_.find(&resource);
  return std::max(forgotten_, channel == channels_.end() ? 0 : channel->second.oldest);
}

std::size_t Feed::subscriptions() const {
  std::size_t count = 0;
  for (const auto& [resource, channel] : channels_) count += channel.readers.size();
  return count;
}

void Feed::publish(ChangePtr change) {
  Channel& channel = channels_[change->resource];
  channel.history.push_back(change);
  if (channel.history.size() > bounds_.history) {
    channel.oldest = channel.history.front()->version;
    channel.history.pop_front();
  }
  for (Subscription* reader : channel.readers) reader->offer(*change, bounds_.backlog);
  for (const auto& kept : handlers_)
    if (auto handler = kept.lock()) (*handler)(change);
}

}  // namespace nvdra::sandbox
