#include "base/time.hpp"

#include "base/backoff.hpp"
#include "base/event.hpp"
#include "base/on_loop.hpp"
#include "base/task_group.hpp"
#include "base/within.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/time.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include <thread>

using namespace nvdra;
using fake::FakeTime;

namespace {

Async<Result<int>> answer_after(Time* time, Duration length) {
  co_await time->sleep(length);
  co_return 7;
}

Async<Result<void>> bounded(Time* time) {
  Result<int> answer = co_await within(*time, 10s, answer_after(time, 1h));
  (void)answer;
  co_return ok();
}

Async<std::thread::id> here() {
  co_return std::this_thread::get_id();
}

Async<Result<int>> failing_work() {
  throw std::logic_error("bug");
  co_return 0;
}

Async<int> thrower() {
  throw std::logic_error("bug");
  co_return 0;
}

}  // namespace

TEST_CASE("times are written as Kubernetes writes them", "[base][time]") {
  struct Row {
    std::int64_t micros;
    std::string seconds, full;
  };
  const Row row = GENERATE(values<Row>({
      {0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
      {1'767'366'245'123'456, "2026-01-02T15:04:05Z", "2026-01-02T15:04:05.123456Z"},
      {951'782'400'000'001, "2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000001Z"},
      {-1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"},
  }));
  WallClock::time_point when{std::chrono::microseconds(row.micros)};
  CHECK(rfc3339(when) == row.seconds);
  CHECK(rfc3339_micro(when) == row.full);
}

TEST_CASE("real time sleeps at least as long as asked", "[base][time]") {
  asio::io_context loop;
  RealTime time;
  Instant before = time.now();
  Result<int> got = fake::run(loop, answer_after(&time, 30ms));
  CHECK(*got == 7);
  CHECK(time.now() - before >= 30ms);
}

TEST_CASE("work that is done in time gives its own answer", "[base][time]") {
  asio::io_context loop;
  RealTime time;
  Result<int> got = fake::run(loop, within(time, 10s, answer_after(&time, 1ms)));
  CHECK(*got == 7);
}

TEST_CASE("what bounded work throws is thrown at once", "[base][time]") {
  asio::io_context loop;
  FakeTime time(loop);  // stands still: the limit never comes
  CHECK_THROWS_WITH(fake::run(loop, within(time, 10s, failing_work()), 5s), "bug");
}

TEST_CASE("cancelling bounded work is a cancellation, not a timeout", "[base][time]") {
  asio::io_context loop;
  FakeTime time(loop);
  asio::cancellation_signal cancel;
  std::exception_ptr thrown;
  asio::co_spawn(
      loop, bounded(&time),
      asio::bind_cancellation_slot(
          cancel.slot(), [&](std::exception_ptr error, const Result<void>&) { thrown = error; }));
  loop.poll();
  cancel.emit(asio::cancellation_type::terminal);
  time.settle();
  CHECK(is_cancellation(thrown));
  CHECK(time.sleeping() == 0);
}

TEST_CASE("back-off doubles up to its cap and starts anew after success or quiet",
          "[base][backoff]") {
  Instant now{};
  Backoff backoff({.first = 1s, .cap = 5s, .jitter = 0, .reset_after = 60s}, [] { return 0.5; });
  CHECK(backoff.next(now) == 1s);
  CHECK(backoff.next(now) == 2s);
  CHECK(backoff.next(now) == 4s);
  CHECK(backoff.next(now) == 5s);
  CHECK(backoff.next(now) == 5s);
  CHECK(backoff.failures() == 5);
  backoff.reset();
  CHECK(backoff.next(now) == 1s);
  CHECK(backoff.next(now + 60s) == 2s);
  CHECK(backoff.next(now + 121s) == 1s);
}

TEST_CASE("jitter stretches a delay by its share of chance", "[base][backoff]") {
  Backoff backoff({.first = 1s, .cap = 8s, .jitter = 0.5, .reset_after = 60s}, [] { return 0.5; });
  CHECK(backoff.next({}) == 1250ms);
  CHECK(backoff.next({}) == 2500ms);
  Random random = real_random();
  for (int i = 0; i < 100; ++i) {
    double number = random();
    CHECK((number >= 0 && number < 1));
  }
}

TEST_CASE("a notification wakes every waiter, and none that has seen it", "[base][event]") {
  asio::io_context loop;
  Event event(loop.get_executor());
  int woken = 0;
  auto waiter = [](Event* bell, int* count) -> Async<void> {
    auto seen = co_await bell->wait(bell->count());
    (void)seen;
    ++*count;
  };
  for (int i = 0; i < 3; ++i) asio::co_spawn(loop, waiter(&event, &woken), asio::detached);
  loop.poll();
  CHECK(woken == 0);
  event.notify();
  loop.poll();
  CHECK(woken == 3);
}

TEST_CASE("another thread asks the loop and gets its answer or its exception", "[base][on_loop]") {
  asio::io_context loop(1);
  auto stay = asio::make_work_guard(loop);
  std::thread runner([&] { loop.run(); });
  std::thread::id ran = on_loop(loop, here());
  CHECK(ran == runner.get_id());
  CHECK_THROWS_AS(on_loop(loop, thrower()), std::logic_error);
  stay.reset();
  runner.join();
}
