// Event recorder: core/v1 Events in the manner of client-go's: the same (object, reason, message)
// again only raises `count` and `lastTimestamp`; more than 25 different events of one object are
// limited to one per 5 minutes (event_book.hpp). Never blocks and never fails its caller: events go
// through a bounded queue; what is dropped is counted and logged at level 2.
#pragma once

#include "base/event.hpp"
#include "k8s/client.hpp"
#include "k8s/event_book.hpp"

#include <deque>

namespace nvdra::k8s {

enum class EventType { normal, warning };

struct ObjectReference {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;
};
ObjectReference reference_of(const Object& object);

class EventRecorder {
public:
  // `component` is source.component and reportingComponent, `host` source.host (node or pod name).
  EventRecorder(asio::any_io_executor executor, Client& client, Time& time, std::string component,
                std::string host);

  // Events of cluster-scoped objects go to namespace "default". `message` is cut at 1024 bytes.
  void record(EventType type, ObjectReference object, std::string reason, std::string message);

  // Sends what is queued, until cancelled; what was being sent then is still queued. Failures are
  // retried twice, then dropped.
  Async<Result<void>> run();
  // Sends what is left, for at most `limit`; for the orderly stop, after run() has ended. (A
  // coroutine that was cancelled must reset its cancellation state before it can await this.)
  Async<void> flush(Duration limit);

  std::size_t waiting() const { return queue_.size(); }
  std::uint64_t dropped() const { return dropped_; }

private:
  struct Pending {
    ObjectKey key;  // of the event
    Json event;
    bool raise;  // it exists: only its count and time are new
  };
  Json render(EventType type, const ObjectReference& object, const EventBook::Entry& entry) const;
  void enqueue(Pending pending);
  Async<void> send_first();
  Async<void> send_patiently(const Pending& pending);
  Async<Result<void>> send(const Pending& pending);
  Async<Result<void>> drain();
  void drop(std::string_view object, std::string_view reason, std::string_view why);

  Client& client_;
  Time& time_;
  std::string component_;
  std::string host_;
  EventBook book_;
  Event changed_;
  std::deque<Pending> queue_;
  std::uint64_t dropped_ = 0;
  std::int64_t serial_ = 0;
};

}  // namespace nvdra::k8s
