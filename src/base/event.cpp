#include "base/event.hpp"

#include "base/within.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace nvdra {
namespace {

Async<Result<void>> notified(Event& event, std::uint64_t seen) {
  co_await event.wait(seen);
  co_return ok();
}

}  // namespace

Event::Event(asio::any_io_executor executor)
    : bell_(executor, asio::steady_timer::time_point::max()) {}

void Event::notify() {
  ++count_;
  bell_.cancel();
}

Async<std::uint64_t> Event::wait(std::uint64_t seen) {
  while (count_ == seen) {
    // A notification and a cancellation both abort the wait; after the latter the next wait throws,
    // because throw_if_cancelled is on by default.
    auto [ignored] = co_await bell_.async_wait(asio::as_tuple(asio::use_awaitable));
    (void)ignored;
  }
  co_return count_;
}

Async<bool> Event::wait_for(Time& time, Duration limit, std::uint64_t seen) {
  const Result<void> woken = co_await within(time, limit, notified(*this, seen));
  co_return woken.has_value();
}

}  // namespace nvdra
