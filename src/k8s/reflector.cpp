#include "k8s/reflector.hpp"

#include "base/log.hpp"

#include <fmt/format.h>

namespace nvdra::k8s {
namespace {

constexpr std::chrono::seconds shortest_watch{150};
constexpr double spread_of_watches = 60;  // seconds; see WatchOptions

// Events in a row that cannot be understood: then it is the connection that is bad.
constexpr int most_malformed = 100;

bool for_a_human(const boost::system::error_code& code) {
  return code == Errc::forbidden || code == Errc::unauthorized || code == Errc::not_found ||
         code == Errc::bad_request;
}

}  // namespace

Reflector::Reflector(Client& client, Time& time, Random random, Scope scope, Store& store)
    : client_(client),
      time_(time),
      random_(random),
      backoff_({}, std::move(random)),
      scope_(std::move(scope)),
      store_(store) {}

Async<Result<void>> Reflector::run() {
  for (;;) {
    bool listed = co_await list();
    if (!listed) continue;
    for (Resume next = Resume::watch; next == Resume::watch;) next = co_await follow();
  }
}

// Fills the store, or pauses.
Async<bool> Reflector::list() {
  LOG_INFO(3, "Listing and watching",
           {{"type", scope_.type.kind},
            {"apiVersion", scope_.type.api_version()},
            {"namespace", scope_.space},
            {"labelSelector", scope_.label_selector}});
  listed_ = time_.now();
  ListOptions options{.label_selector = scope_.label_selector,
                      .field_selector = scope_.field_selector};
  Result<ListAnswer> listed = co_await client_.list(scope_.type, scope_.space, std::move(options));
  if (!listed) {
    co_await pause(listed.error().code, listed.error().text());
    co_return false;
  }
  trouble_.clear();
  failures_ = 0;
  version_ = std::move(listed->version);
  std::erase_if(listed->items, [this](const Object& object) { return !understood(object); });
  LOG_INFO(2, "Caches populated",
           {{"type", scope_.type.kind},
            {"apiVersion", scope_.type.api_version()},
            {"count", listed->items.size()},
            {"resourceVersion", version_}});
  store_.replace(std::move(listed->items), version_);
  co_return true;
}

// One watch, from the last version seen to its end, and the pause after it if it was a failure.
Async<Resume> Reflector::follow() {
  WatchEnd end = co_await watch_once();
  Resume next = resume(end);
  failures_ = healthy(end) ? 0 : failures_ + 1;
  bool fresh = time_.now() - listed_ < 1s;
  bool expired = end.error && *end.error == Errc::gone;
  // A version that has expired is no failure, unless it is the one that was listed a moment ago.
  if (healthy(end) || (expired && !fresh)) co_return next;

  std::string at_once = fmt::format("watch {}: ended at once without an event", scope_.type.plural);
  std::string why = trouble_.empty() ? at_once : trouble_;
  co_await pause(end.error.value_or(boost::system::error_code{}), std::move(why));
  co_return next;
}

Async<WatchEnd> Reflector::watch_once() {
  WatchEnd end{.opened = false, .failures_before = failures_};
  Instant began = time_.now();
  WatchOptions options{.label_selector = scope_.label_selector,
                       .field_selector = scope_.field_selector,
                       .resource_version = version_};
  // Watches of one process are not all to be opened again at one moment.
  options.server_limit =
      shortest_watch + std::chrono::seconds(static_cast<int>(random_() * spread_of_watches));
  auto opened = co_await client_.watch(scope_.type, scope_.space, std::move(options));
  if (opened) {
    end.opened = true;
    std::optional<Error> error = co_await read_events(**opened, end.shown);
    if (error) end.error = error->code;
    if (error) trouble_ = error->text();
  } else {
    end.error = opened.error().code;
    trouble_ = opened.error().text();
  }
  end.lasted = time_.now() - began;
  co_return end;
}

// Until the watch ends: nullopt in good order.
Async<std::optional<Error>> Reflector::read_events(Watch& watch, bool& shown) {
  int malformed = 0;
  trouble_.clear();
  for (;;) {
    Result<std::optional<WatchEvent>> event = co_await watch.next();
    if (event && !*event) co_return std::nullopt;
    if (event) {
      malformed = 0;
      shown = true;
      apply(**std::move(event));
      continue;
    }
    bool one_event = event.error().code == Errc::malformed_answer;
    if (!one_event || ++malformed >= most_malformed) co_return event.error();
    ++skipped_;
    LOG_WARNING("Skipped a watch event that could not be understood",
                {{"type", scope_.type.kind}, {"err", event.error().text()}});
  }
}

void Reflector::apply(WatchEvent event) {
  const Object& object = event.object;
  std::string version(object.version());
  if (!version.empty()) version_ = version;
  if (event.kind != WatchEvent::Kind::bookmark && !understood(object)) return;
  switch (event.kind) {
    case WatchEvent::Kind::added:
    case WatchEvent::Kind::modified: store_.put(std::move(event.object)); break;
    case WatchEvent::Kind::deleted: store_.erase(object.key(), object.uid()); break;
    case WatchEvent::Kind::bookmark:
    case WatchEvent::Kind::error: break;  // the watch makes errors of its error events
  }
  store_.passed(version_);
}

bool Reflector::understood(const Object& object) {
  if (!object.name().empty() && !object.version().empty()) return true;
  ++skipped_;
  LOG_WARNING("Skipped an object without name or resourceVersion",
              {{"type", scope_.type.kind}, {"object", object.key().text()}});
  return false;
}

Async<void> Reflector::pause(boost::system::error_code code, std::string why) {
  trouble_ = std::move(why);
  Duration length = backoff_.next(time_.now());
  auto after = fmt::format("{}ms", std::chrono::ceil<std::chrono::milliseconds>(length).count());
  if (for_a_human(code)) {
    LOG_WARNING("Cannot list or watch, retrying",
                {{"type", scope_.type.kind}, {"after", after}, {"err", trouble_}});
  } else {
    LOG_INFO(1, "Cannot list or watch, retrying",
             {{"type", scope_.type.kind}, {"after", after}, {"err", trouble_}});
  }
  co_await time_.sleep(length);
}

}  // namespace nvdra::k8s
