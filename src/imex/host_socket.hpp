// Asking this node's administrator-managed IMEX service whether it is ready.
#pragma once

#include "base/time.hpp"
#include "imex/host_state.hpp"

#include <ctime>
#include <memory>
#include <optional>

namespace nvdra::imex {

// One per node and process; it must outlive the coroutines that it started. Used by claim
// preparation and by check-host-socket:
//   HostState state = co_await socket.probe();
//   while (!is_ready(state)) { co_await socket.wait_change(); state = co_await socket.probe(); }
// The caller bounds the loop.
class HostSocket {
public:
  // `interval` is the longest pause between two questions of a waiting caller.
  HostSocket(HostService service, Time& time, Duration interval = 1s)
      : service_(std::move(service)), time_(time), interval_(interval) {}
  HostSocket(const HostSocket&) = delete;
  HostSocket& operator=(const HostSocket&) = delete;

  const HostService& service() const { return service_; }

  // Asks once; ends within service().limit and two seconds. Calls at the same time share one child
  // process and its answer; when the caller that runs it is cancelled, another one asks again.
  // No child is started while there is no tool, no socket or no listener.
  Async<HostState> probe();

  // Returns when the socket or its directory has changed since the last question, or after a pause:
  // short just after a change, at most `interval`.
  Async<Result<void>> wait_change();

private:
  struct Flight;
  // What a change of the socket changes.
  struct Sight {
    std::string directory;  // the nearest existing directory of the socket's path
    std::uint64_t device = 0, inode = 0;
    std::time_t seconds = 0;
    long nanoseconds = 0;
    bool operator==(const Sight&) const = default;
  };

  Async<HostState> ask();
  std::optional<HostState> answer_without_asking() const;
  Sight look() const;

  HostService service_;
  Time& time_;
  Duration interval_;
  std::shared_ptr<Flight> flight_;
  Sight seen_;
  Instant changed_{};
};

}  // namespace nvdra::imex
