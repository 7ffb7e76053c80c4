#include "base/task_group.hpp"

#include "base/event.hpp"
#include "base/within.hpp"
#include "catch.hpp"
#include "fake/time.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <optional>

using namespace nvdra;
using fake::FakeTime;

namespace {

Async<Result<void>> sleeper(Time* time, Duration length, bool* ended) {
  co_await time->sleep(length);
  *ended = true;
  co_return ok();
}

Async<Result<void>> failing(Time* time, Duration after) {
  co_await time->sleep(after);
  co_return fail(make_error_code(boost::system::errc::io_error));
}

Async<Result<int>> late_answer(Time* time, Duration length) {
  co_await time->sleep(length);
  co_return 7;
}

}  // namespace

TEST_CASE("the first child to fail stops the others and names itself", "[base][task_group]") {
  asio::io_context loop(1);
  FakeTime time(loop);
  bool slept = false;
  std::optional<Result<void>> joined;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        TaskGroup group(loop.get_executor());
        group.spawn("sleeper", sleeper(&time, 1h, &slept));
        group.spawn("writer", failing(&time, 1s));
        joined = co_await group.join();
      },
      asio::detached);

  time.advance(1s);
  REQUIRE(joined);
  CHECK(joined->error().text() == "writer: Input/output error");
  CHECK_FALSE(slept);
  CHECK(time.sleeping() == 0);
}

TEST_CASE("join returns only when every child has ended", "[base][task_group]") {
  asio::io_context loop(1);
  FakeTime time(loop);
  bool first = false, second = false;
  std::optional<Result<void>> joined;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        TaskGroup group(loop.get_executor());
        group.spawn("a", sleeper(&time, 1s, &first));
        group.spawn("b", sleeper(&time, 5s, &second));
        joined = co_await group.join();
      },
      asio::detached);

  time.advance(1s);
  CHECK(first);
  CHECK_FALSE(joined);
  time.advance(4s);
  CHECK(second);
  REQUIRE(joined);
  CHECK(joined->has_value());
}

TEST_CASE("work that outlives its limit is cancelled and reported as a timeout", "[base][time]") {
  asio::io_context loop(1);
  FakeTime time(loop);
  std::optional<Result<int>> got;
  asio::co_spawn(
      loop, [&]() -> Async<void> { got = co_await within(time, 10s, late_answer(&time, 1h)); },
      asio::detached);

  time.advance(9s);
  CHECK_FALSE(got);
  time.advance(1s);
  REQUIRE(got);
  CHECK(got->error().code == boost::system::errc::timed_out);
  CHECK(time.sleeping() == 0);
}

TEST_CASE("a notification that came before the wait is not missed", "[base][event]") {
  asio::io_context loop(1);
  Event event(loop.get_executor());
  auto seen = event.count();
  event.notify();
  bool woke = false;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        auto count = co_await event.wait(seen);
        woke = count == seen + 1;
      },
      asio::detached);
  loop.poll();
  CHECK(woke);
}

TEST_CASE("a bounded wait for an event tells a notification from the end of its time",
          "[base][event]") {
  asio::io_context loop(1);
  fake::FakeTime time(loop);
  Event event(loop.get_executor());
  std::optional<bool> woken;
  auto wait = [&] {
    woken.reset();
    asio::co_spawn(
        loop,
        [&]() -> Async<void> {
          const bool told = co_await event.wait_for(time, 10s, event.count());
          woken = told;
        },
        asio::detached);
    time.advance(9s);
    CHECK_FALSE(woken);
  };
  wait();
  event.notify();
  time.advance(0s);
  CHECK(woken == true);
  wait();
  time.advance(1s);
  CHECK(woken == false);
  CHECK(time.sleeping() == 0);
}
