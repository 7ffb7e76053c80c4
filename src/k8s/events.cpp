#include "k8s/events.hpp"

#include "base/log.hpp"
#include "base/within.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::k8s {
namespace {

constexpr std::size_t longest_queue = 1000;
constexpr std::size_t longest_message = 1024;
constexpr std::size_t longest_name = 200;  // of the object, in the event's name; 253 for all of it
constexpr Duration pauses[] = {1s, 5s};    // before the second and the third attempt

ResourceType event_type() {
  return {.group = "", .version = "v1", .plural = "events", .kind = "Event"};
}

std::string_view type_name(EventType type) {
  return type == EventType::normal ? "Normal" : "Warning";
}

// At most `limit` bytes, no character cut through.
void cut(std::string& text, std::size_t limit) {
  if (text.size() <= limit) return;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  text.resize(limit);
}

}  // namespace

ObjectReference reference_of(const Object& object) {
  return {.api_version = std::string(text_or_empty(object.json(), "apiVersion")),
          .kind = std::string(text_or_empty(object.json(), "kind")),
          .key = object.key(),
          .uid = std::string(object.uid())};
}

EventRecorder::EventRecorder(asio::any_io_executor executor, Client& client, Time& time,
                             std::string component, std::string host)
    : client_(client),
      time_(time),
      component_(std::move(component)),
      host_(std::move(host)),
      changed_(std::move(executor)) {}

void EventRecorder::record(EventType type, ObjectReference object, std::string reason,
                           std::string message) {
  cut(message, longest_message);
  auto whom =
      fmt::format("{} {} {} {}", object.api_version, object.kind, object.key.text(), object.uid);
  auto what = fmt::format("{}\n{}\n{}", type_name(type), reason, message);
  // As client-go's: the object's name and the moment, which no other event of it shares.
  std::string base = object.key.name.substr(0, longest_name);
  auto nanos = std::chrono::nanoseconds(time_.wall().time_since_epoch()).count();
  std::string name = fmt::format("{}.{:x}", base, nanos + serial_++);

  auto decision = book_.decide(whom, what, std::move(name), {time_.now(), time_.wall()});
  if (decision.send == EventBook::Send::nothing) {
    if (decision.entry.count == 0) drop(object.key.text(), reason, "too many of this object");
    return;
  }
  std::string space = object.key.space.empty() ? "default" : object.key.space;
  Pending pending{.key = {space, decision.entry.name},
                  .event = render(type, object, decision.entry),
                  .raise = decision.send == EventBook::Send::raise};
  pending.event.get_object()["reason"] = reason;
  pending.event.get_object()["message"] = message;
  enqueue(std::move(pending));
}

Json EventRecorder::render(EventType type, const ObjectReference& object,
                           const EventBook::Entry& entry) const {
  JsonObject involved{{"apiVersion", object.api_version},
                      {"kind", object.kind},
                      {"name", object.key.name},
                      {"uid", object.uid}};
  if (!object.key.space.empty()) involved["namespace"] = object.key.space;
  return {{"metadata",
           {{"name", entry.name},
            {"namespace", object.key.space.empty() ? "default" : object.key.space}}},
          {"involvedObject", std::move(involved)},
          {"type", type_name(type)},
          {"source", {{"component", component_}, {"host", host_}}},
          {"firstTimestamp", rfc3339(entry.first)},
          {"lastTimestamp", rfc3339(time_.wall())},
          {"count", entry.count},
          {"reportingComponent", component_},
          {"reportingInstance", host_}};
}

void EventRecorder::enqueue(Pending pending) {
  auto same = [&](const Pending& other) { return other.key == pending.key; };
  auto queued = std::ranges::find_if(queue_, same);
  if (queued != queue_.end()) {  // not sent yet: the newer count replaces it
    queued->event = std::move(pending.event);
    return;
  }
  if (queue_.size() >= longest_queue)
    return drop(pending.key.text(), text_or_empty(pending.event, "reason"), "the queue is full");
  queue_.push_back(std::move(pending));
  changed_.notify();
}

Async<Result<void>> EventRecorder::run() {
  for (;;) {
    while (queue_.empty()) co_await changed_.wait(changed_.count());
    co_await send_first();
  }
}

Async<void> EventRecorder::flush(Duration limit) {
  Result<void> sent = co_await within(time_, limit, drain());
  if (!sent) LOG_INFO(2, "Events could not be sent before the end", {{"events", queue_.size()}});
}

Async<Result<void>> EventRecorder::drain() {
  while (!queue_.empty()) co_await send_first();
  co_return ok();
}

Async<void> EventRecorder::send_first() {
  Pending pending = std::move(queue_.front());
  queue_.pop_front();
  try {
    co_await send_patiently(pending);
  } catch (...) {
    queue_.push_front(std::move(pending));
    throw;
  }
}

Async<void> EventRecorder::send_patiently(const Pending& pending) {
  Result<void> sent = co_await send(pending);
  for (Duration pause : pauses) {
    if (sent || !is_retryable(sent.error())) break;
    co_await time_.sleep(pause);
    sent = co_await send(pending);
  }
  if (sent) co_return;
  drop(pending.key.text(), text_or_empty(pending.event, "reason"), sent.error().text());
}

Async<Result<void>> EventRecorder::send(const Pending& pending) {
  if (pending.raise) {
    Json news{{"count", *find(pending.event, "count")},
              {"lastTimestamp", *find(pending.event, "lastTimestamp")}};
    Result<Object> raised = co_await client_.patch(event_type(), pending.key, std::move(news));
    bool expired = !raised && raised.error().code == Errc::not_found;
    if (raised) co_return ok();
    if (!expired) co_return std::move(raised).failure();
  }
  Result<Object> created = co_await client_.create(event_type(), pending.key.space, pending.event);
  // An attempt whose answer was lost has made it.
  bool there = !created && created.error().code == Errc::already_exists;
  if (!created && !there) co_return std::move(created).failure();
  co_return ok();
}

void EventRecorder::drop(std::string_view object, std::string_view reason, std::string_view why) {
  ++dropped_;
  LOG_INFO(2, "Dropped an event", {{"object", object}, {"reason", reason}, {"why", why}});
}

}  // namespace nvdra::k8s
