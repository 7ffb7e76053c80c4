// The change feed: every write of the Registry, in order, for watches and controllers.
// Memory is bounded: per resource at most `history` changes are kept for watches that start in the
// past, and a subscription holds at most `backlog` events that its reader has not taken. A reader
// that is too far behind, or starts too far back, finds itself expired (410) and lists again.
#pragma once

#include "sandbox/store_item.hpp"
#include "sandbox/store_selector.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>

namespace nvdra::sandbox {

// `before` is null at creation. At deletion `after` is null and `last` is the object as the
// deletion left it (its resourceVersion is that of the deletion).
struct Change {
  const Resource* resource;
  std::uint64_t version;
  ItemPtr before;
  ItemPtr after;
  ItemPtr last;
};
using ChangePtr = std::shared_ptr<const Change>;

// Which objects of a resource a list or watch sees.
struct Filter {
  std::string space = {};  // "" = all namespaces
  Selector labels = {};
  Selector fields = {};

  bool matches(const Item& item) const;
};

struct FeedEvent {
  enum class Kind { added, modified, deleted };
  Kind kind;
  ItemPtr item;
  std::uint64_t version;
};

// How a change looks through a filter: an object that leaves the selection is deleted from it.
std::optional<FeedEvent> seen_through(const Filter& filter, const Change& change);

class Feed;

// One reader of one resource. Ends its subscription when destroyed.
class Subscription {
public:
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  std::optional<FeedEvent> next();
  // Too far behind: no more events will come.
  bool expired() const { return expired_; }
  std::size_t waiting() const { return events_.size(); }

private:
  friend class Feed;
  Subscription(Feed& feed, const Resource& resource, Filter filter, std::function<void()> wake)
      : feed_(feed), resource_(resource), filter_(std::move(filter)), wake_(std::move(wake)) {}
  void offer(const Change& change, std::size_t backlog);

  Feed& feed_;
  const Resource& resource_;
  Filter filter_;
  std::function<void()> wake_;
  std::deque<FeedEvent> events_;
  bool expired_ = false;
};

class Feed {
public:
  struct Bounds {
    std::size_t history = 4096;
    std::size_t backlog = 65536;
  };

  explicit Feed(Bounds bounds) : bounds_(bounds) {}

  using Handler = std::function<void(const ChangePtr&)>;
  // Called for every change, synchronously, before the write returns, until the answer is dropped.
  // Handlers must not write to the Registry; they note what is to be done and do it later.
  [[nodiscard]] std::shared_ptr<Handler> on_change(Handler handler);

  // Events of changes after `from`; `wake` is called when one arrives. nullptr when `from` is
  // older than the history.
  std::unique_ptr<Subscription> subscribe(const Resource& resource, Filter filter,
                                          std::uint64_t from, std::function<void()> wake);
  // A resource that is served from now on: there is nothing to watch from before.
  void begin(const Resource& resource, std::uint64_t now) { channels_[&resource].oldest = now; }
  // Forgets the history, as a compaction does.
  void forget(std::uint64_t now);
  // Versions below this one are too old to watch from.
  std::uint64_t oldest(const Resource& resource) const;
  std::size_t subscriptions() const;

  void publish(ChangePtr change);

private:
  friend class Subscription;
  struct Channel {
    std::deque<ChangePtr> history;
    std::uint64_t oldest = 0;
    std::list<Subscription*> readers;
  };
  Bounds bounds_;
  std::map<const Resource*, Channel> channels_;
  std::uint64_t forgotten_ = 0;
  std::vector<std::weak_ptr<Handler>> handlers_;
};

}  // namespace nvdra::sandbox
