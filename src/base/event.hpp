// Event: one coroutine (or several) of the loop waits, another one notifies.
#pragma once

#include "base/time.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstdint>

namespace nvdra {

// A counter that can be awaited. notify() wakes every waiter; a waiter that remembers the count it
// has seen cannot miss a notification that came before it began to wait.
class Event {
public:
  explicit Event(asio::any_io_executor executor);

  std::uint64_t count() const { return count_; }
  void notify();
  // Returns the new count once count() != seen; throws operation_aborted when cancelled.
  Async<std::uint64_t> wait(std::uint64_t seen);
  // The same for at most `limit`. False: it has passed, and count() is still `seen`.
  Async<bool> wait_for(Time& time, Duration limit, std::uint64_t seen);

private:
  asio::steady_timer bell_;
  std::uint64_t count_ = 0;
};

}  // namespace nvdra
