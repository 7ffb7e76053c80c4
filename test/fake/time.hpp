// Time that stands still until told to advance.
#pragma once

#include "base/time.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <map>

namespace nvdra::fake {

class FakeTime : public Time {
public:
  explicit FakeTime(asio::io_context& loop) : loop_(loop) {}

  Instant now() const override { return now_; }
  WallClock::time_point wall() const override {
    return WallClock::time_point{} + std::chrono::hours(24 * 365 * 50) +
           std::chrono::duration_cast<WallClock::duration>(now_.time_since_epoch());
  }

  Async<void> sleep(Duration length) override {
    asio::steady_timer bell(loop_, Instant::max());
    auto entry = sleepers_.emplace(now_ + length, &bell);
    auto [rung] = co_await bell.async_wait(asio::as_tuple(asio::use_awaitable));
    (void)rung;
    sleepers_.erase(entry);
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      throw boost::system::system_error(asio::error::operation_aborted);
  }

  // Lets everything that can run do so, moves the clock, and lets those due run.
  void advance(Duration step) {
    settle();
    now_ += step;
    for (auto& [due, bell] : sleepers_)
      if (due <= now_) bell->cancel();
    settle();
  }

  // Runs everything that can run without the clock moving.
  void settle() {
    loop_.restart();
    loop_.poll();
  }

  std::size_t sleeping() const { return sleepers_.size(); }

private:
  asio::io_context& loop_;
  Instant now_{};
  std::multimap<Instant, asio::steady_timer*> sleepers_;
};

}  // namespace nvdra::fake
