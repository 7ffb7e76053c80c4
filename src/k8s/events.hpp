// Event recorder: core/v1 Events in the manner of client-go's: the same (object, reason, message)
// again only raises `count` and `lastTimestamp`; more than `burst` different events of one object
// are limited to one per `refill`. Never blocks and never fails its caller: events go through a
// bounded queue; what is dropped is counted and logged at level 2.
#pragma once

#include "base/event.hpp"
#include "k8s/client.hpp"

#include <deque>
#include <map>

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

  // Sends what is queued, until cancelled. Failures are retried twice, then dropped.
  Async<Result<void>> run();
  // Sends what is left, for at most `limit`; for the orderly stop.
  Async<void> flush(Duration limit);

private:
  struct Pending;
  Async<void> send(Pending pending);

  Client& client_;
  Time& time_;
  std::string component_;
  std::string host_;
  Event changed_;
  std::deque<Pending> queue_;
  struct Seen;
  std::map<std::string, Seen> seen_;
  struct Budget;
  std::map<std::string, Budget> budgets_;
};

}  // namespace nvdra::k8s
