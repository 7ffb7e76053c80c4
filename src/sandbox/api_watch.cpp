// Watch connections.
#include "base/try.hpp"
#include "sandbox/api_encode.hpp"
#include "sandbox/api_objects.hpp"
#include "sandbox/api_session.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvdra::sandbox {
namespace {

constexpr std::size_t batch_bytes = 64u << 10;

std::string error_event(const Failure& failure) {
  return fmt::format("{{\"type\":\"ERROR\",\"object\":{}}}\n", to_text(status_of(failure.error)));
}

struct Wish {
  std::uint64_t from = 0;       // 0 = begin with the present state
  bool initial_events = false;  // sendInitialEvents: the state, then a marked bookmark
  bool bookmarks = false;
  std::chrono::seconds limit{1800};
};

Result<Wish> wish_of(const Request& request) {
  Wish wish;
  std::string version = request.parameter("resourceVersion");
  auto [end, failed] = std::from_chars(version.data(), version.data() + version.size(), wish.from);
  if (!version.empty() && (failed != std::errc{} || end != version.data() + version.size()))
    return deny(Reason::bad_request,
                fmt::format("Invalid value: \"{}\": resourceVersion", version));
  wish.initial_events = request.flag("sendInitialEvents");
  if (wish.initial_events) wish.from = 0;
  wish.bookmarks = request.flag("allowWatchBookmarks");
  std::string limit = request.parameter("timeoutSeconds");
  std::int64_t seconds = 0;
  if (std::from_chars(limit.data(), limit.data() + limit.size(), seconds).ec == std::errc{} &&
      seconds > 0)
    wish.limit = std::chrono::seconds(seconds);
  return wish;
}

// The events of one watch, as text, with what a fault rule does to them.
class Story {
public:
  Story(Shape shape, Fault fault, Time& time)
      : shape_(std::move(shape)), fault_(std::move(fault)), time_(time) {}

  void add(const FeedEvent& event) {
    if (ended()) return;
    if (fault_.drop_events > 0) {
      --fault_.drop_events;
      return;
    }
    text_ += encode_event(shape_, event, time_.wall(), told_ == 0);
    ++told_;
  }
  void add_bookmark(std::uint64_t version, bool initial_end) {
    text_ += encode_bookmark(shape_, version, initial_end);
  }
  void add_error(const Failure& failure) { text_ += error_event(failure); }
  bool ended() const { return fault_.end_after > 0 && told_ >= fault_.end_after; }
  bool full() const { return text_.size() >= batch_bytes; }
  // What is to be sent now; nothing when the watch is silent.
  std::string take() {
    std::string text = std::exchange(text_, {});
    return fault_.silent ? std::string() : text;
  }

private:
  Shape shape_;
  Fault fault_;
  Time& time_;
  std::string text_;
  std::size_t told_ = 0;
};

// A watch that is listed among the server's open ones, for as long as this lives.
class Listed {
public:
  using Watches = std::multimap<std::string, std::function<void()>>;
  Listed(Watches& watches, const std::string& plural, std::function<void()> cut)
      : watches_(watches), entry_(watches.emplace(plural, std::move(cut))) {}
  ~Listed() { watches_.erase(entry_); }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

private:
  Watches& watches_;
  Watches::iterator entry_;
};

}  // namespace

Async<Result<void>> ApiServer::Session::watch(Route route, Request request, Fault fault) {
  Registry& registry = server.registry_;
  Result<Filter> filter = filter_of(route, request);
  Result<Wish> wish = wish_of(request);
  if (!filter || !wish) {
    Answer no = refusal(filter ? wish.error() : filter.error());
    Result<void> sent = co_await connection.write(std::move(no));
    co_return sent;
  }
  Story story(shape_of(request, route), std::move(fault), registry.time());
  bool cut = false;
  std::function<void()> ring = connection.ringer();
  Listed listed(server.watches_, route.resource->type.plural, [&cut, ring] {
    cut = true;
    ring();
  });

  std::uint64_t told = registry.version();
  auto reader = registry.feed().subscribe(*route.resource, *filter,
                                          wish->from == 0 ? told : wish->from, ring);
  if (!reader)
    story.add_error(
        deny(Reason::expired, fmt::format("too old resource version: {} ({})", wish->from,
                                          registry.feed().oldest(*route.resource))));
  if (reader && wish->from == 0) {
    for (const ItemPtr& item : registry.all(*route.resource, filter->space))
      if (filter->matches(*item)) story.add({FeedEvent::Kind::added, item, told});
    if (wish->initial_events) story.add_bookmark(told, true);
  }

  CO_TRY_VOID(co_await connection.begin_stream(200, "application/json"));
  Instant end = Clock::now() + wish->limit;
  Instant bookmark = Clock::now() + server.options_.bookmark_every;
  for (;;) {
    while (reader && !story.full()) {
      told = registry.version();
      std::optional<FeedEvent> event = reader->next();
      if (!event) break;
      told = event->version;
      story.add(*event);
    }
    if (reader && reader->expired())
      story.add_error(deny(Reason::expired, "the watch fell too far behind"));
    bool over = Clock::now() >= end;
    if (reader && wish->bookmarks && (over || Clock::now() >= bookmark)) {
      story.add_bookmark(told, false);
      bookmark = Clock::now() + server.options_.bookmark_every;
    }
    bool last = !reader || reader->expired() || over;
    std::string text = story.take();
    if (!text.empty()) {
      CO_TRY_VOID(co_await connection.write_chunk(std::move(text)));
    }
    if (cut || connection.client_gone() || story.ended())
      co_return fail(make_error_code(Reason::unavailable), "the watch was cut");
    if (last) break;
    if (reader->waiting() == 0) co_await connection.wait_for_ring(std::min(end, bookmark));
  }
  Result<void> ended = co_await connection.end_stream();
  co_return ended;
}

}  // namespace nvdra::sandbox
