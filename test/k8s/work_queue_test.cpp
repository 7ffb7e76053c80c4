#include "k8s/work_queue.hpp"

#include "catch.hpp"
#include "fake/time.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <vector>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  WorkQueue queue{loop.get_executor(), time};
  std::vector<std::string> got;

  // A worker that takes one key and keeps it.
  void take() {
    asio::co_spawn(
        loop,
        [this]() -> Async<void> {
          std::string key = co_await queue.next();
          got.push_back(key);
        },
        asio::detached);
    time.settle();
  }
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("a key queued twice before it is worked is worked once", "[k8s][work_queue]") {
  World w;
  w.queue.add("a");
  w.queue.add("b");
  w.queue.add("a");
  CHECK(w.queue.waiting() == 2);
  w.take();
  w.take();
  w.take();
  CHECK(w.got == Keys{"a", "b"});
}

TEST_CASE("a key queued while it runs is handed out again only when it has finished",
          "[k8s][work_queue]") {
  World w;
  w.queue.add("a");
  w.take();
  w.queue.add("a");
  w.queue.add("a");
  w.take();
  CHECK(w.got == Keys{"a"});
  w.queue.done("a");
  w.time.settle();
  CHECK(w.got == Keys{"a", "a"});
  w.queue.done("a");
  CHECK(w.queue.idle());
}

TEST_CASE("a delayed key is handed out when its time has come, not before", "[k8s][work_queue]") {
  World w;
  w.queue.add_after("late", 10s);
  w.queue.add_after("soon", 5s);
  w.take();
  w.take();
  w.time.advance(4999ms);
  CHECK(w.got.empty());
  w.time.advance(1ms);
  CHECK(w.got == Keys{"soon"});
  w.time.advance(5s);
  CHECK(w.got == Keys{"soon", "late"});
  CHECK(w.time.sleeping() == 0);
}

TEST_CASE("of two delays of a key the earlier wins", "[k8s][work_queue]") {
  auto [first, second] = GENERATE(table<Duration, Duration>({{10s, 3s}, {3s, 10s}}));
  World w;
  w.queue.add_after("a", first);
  w.queue.add_after("a", second);
  CHECK(w.queue.delayed() == 1);
  w.take();
  w.time.advance(3s);
  CHECK(w.got == Keys{"a"});
  CHECK(w.queue.delayed() == 0);
}

TEST_CASE("a delayed key that is queued without delay runs at once and only once",
          "[k8s][work_queue]") {
  World w;
  w.queue.add_after("a", 10s);
  w.queue.add("a");
  w.take();
  CHECK(w.got == Keys{"a"});
  w.queue.done("a");
  CHECK(w.queue.idle());
}

TEST_CASE("a key that becomes due while it runs waits until it has finished", "[k8s][work_queue]") {
  World w;
  w.queue.add("a");
  w.take();
  w.queue.add_after("a", 1s);
  w.take();
  w.time.advance(2s);
  CHECK(w.got == Keys{"a"});
  w.queue.done("a");
  w.time.settle();
  CHECK(w.got == Keys{"a", "a"});
}

TEST_CASE("a worker whose wait is cancelled takes no key with it", "[k8s][work_queue]") {
  World w;
  asio::cancellation_signal stop;
  std::exception_ptr thrown;
  asio::co_spawn(
      w.loop,
      [&]() -> Async<void> {
        std::string key = co_await w.queue.next();
        w.got.push_back(key);
      },
      asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e) { thrown = e; }));
  w.queue.add_after("a", 1s);
  w.time.settle();
  stop.emit(asio::cancellation_type::terminal);
  w.time.settle();
  CHECK(thrown);
  CHECK(w.time.sleeping() == 0);
  w.time.advance(1s);
  w.take();
  CHECK(w.got == Keys{"a"});
}
