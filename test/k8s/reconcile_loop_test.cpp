#include "k8s/reconcile_loop.hpp"

#include "catch.hpp"
#include "fake/time.hpp"
#include "k8s/status.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <stdexcept>
#include <vector>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

// A reconcile loop whose handler runs a script: what each key's next run does.
struct World {
  using Run = std::function<Async<Result<Again>>()>;

  asio::io_context loop{1};
  fake::FakeTime time{loop};
  std::vector<std::string> started;
  std::vector<std::string> running;
  std::size_t most = 0;
  bool twice = false;
  std::map<std::string, std::deque<Run>> script;
  ReconcileLoop reconcile{loop.get_executor(), time, [] { return 0.0; }, "test",
                          [this](std::string key) { return handle(std::move(key)); }};
  asio::cancellation_signal stop;
  std::optional<Result<void>> ended;

  void start(int workers) {
    asio::co_spawn(loop, reconcile.run(workers),
                   asio::bind_cancellation_slot(
                       stop.slot(), [this](std::exception_ptr thrown, Result<void> result) {
                         if (!thrown) ended = std::move(result);
                       }));
    time.settle();
  }
  ~World() {
    stop.emit(asio::cancellation_type::terminal);
    time.settle();
  }

  struct Leave {
    World& world;
    std::string key;
    ~Leave() { std::erase(world.running, key); }
  };

  Async<Result<Again>> handle(std::string key) {
    if (std::ranges::find(running, key) != running.end()) twice = true;
    running.push_back(key);
    started.push_back(key);
    most = std::max(most, running.size());
    Leave leave{*this, key};
    std::deque<Run>& runs = script[key];
    if (runs.empty()) co_return Again{};
    Run run = std::move(runs.front());
    runs.pop_front();
    Result<Again> result = co_await run();
    co_return result;
  }

  Run busy(Duration length) {
    return [this, length]() -> Async<Result<Again>> { return sleeping(length); };
  }
  Async<Result<Again>> sleeping(Duration length) {
    co_await time.sleep(length);
    co_return Again{};
  }
};

Async<Result<Again>> answer(Result<Again> result) {
  co_return result;
}
World::Run says(Again again) {
  return [again] { return answer(Result<Again>(again)); };
}
World::Run fails(Errc code = Errc::server_error) {
  return [code] { return answer(fail(code, "patch x")); };
}

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("one key never runs twice at once, however many workers there are",
          "[k8s][reconcile_loop]") {
  World w;
  w.script["a"] = {w.busy(10s), w.busy(10s)};
  w.start(4);
  w.reconcile.add("a");
  w.time.settle();
  w.reconcile.add("a");
  w.reconcile.add("b");
  w.time.settle();
  CHECK(w.started == Keys{"a", "b"});
  w.time.advance(10s);
  CHECK(w.started == Keys{"a", "b", "a"});
  CHECK_FALSE(w.twice);
}

TEST_CASE("no more keys run at once than there are workers", "[k8s][reconcile_loop]") {
  World w;
  for (const char* key : {"a", "b", "c", "d"}) w.script[key] = {w.busy(1s)};
  w.start(3);
  for (const char* key : {"a", "b", "c", "d"}) w.reconcile.add(key);
  w.time.settle();
  CHECK(w.running.size() == 3);
  CHECK(w.reconcile.numbers().waiting == 1);
  w.time.advance(1s);
  w.time.advance(1s);
  CHECK(w.most == 3);
  CHECK(w.started == Keys{"a", "b", "c", "d"});
}

TEST_CASE("a failing key is retried after 5 ms, doubling up to 30 s, and success resets it",
          "[k8s][reconcile_loop]") {
  World w;
  for (int i = 0; i < 15; ++i) w.script["a"].push_back(fails());
  w.start(1);
  w.reconcile.add("a");
  w.time.settle();
  std::size_t runs = 1;
  for (Duration pause : {5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1280ms, 2560ms, 5120ms,
                         10240ms, 20480ms, 30000ms, 30000ms}) {
    w.time.advance(pause - 1ms);
    CHECK(w.started.size() == runs);
    w.time.advance(1ms);
    CHECK(w.started.size() == ++runs);
  }
  CHECK(w.reconcile.numbers().failed == 15);
  CHECK(w.reconcile.numbers().done == 1);

  w.script["a"] = {fails()};
  w.reconcile.add("a");
  w.time.settle();
  w.time.advance(5ms);
  CHECK(w.started.size() == runs + 2);
}

TEST_CASE("a failing key does not hold up another one", "[k8s][reconcile_loop]") {
  World w;
  w.script["bad"] = {fails(), fails(Errc::conflict)};
  w.start(1);
  w.reconcile.add("bad");
  w.reconcile.add("good");
  w.time.settle();
  CHECK(w.started == Keys{"bad", "good"});
}

TEST_CASE("a handler that asks for another look gets it after that time", "[k8s][reconcile_loop]") {
  World w;
  w.script["a"] = {says(30s), says({})};
  w.start(1);
  w.reconcile.add("a");
  w.time.advance(29s);
  CHECK(w.started.size() == 1);
  w.time.advance(1s);
  CHECK(w.started.size() == 2);
  w.time.advance(1h);
  CHECK(w.started.size() == 2);
}

TEST_CASE("an exception of a handler is an error of its key, not the end of the loop",
          "[k8s][reconcile_loop]") {
  World w;
  w.script["a"] = {
      []() -> Async<Result<Again>> {
        throw std::logic_error("broken");
        co_return Again{};
      },
      []() -> Async<Result<Again>> { throw std::runtime_error("not even a coroutine"); },
      // Nobody cancelled this worker.
      []() -> Async<Result<Again>> {
        throw boost::system::system_error(asio::error::operation_aborted);
        co_return Again{};
      },
  };
  w.start(1);
  w.reconcile.add("a");
  w.time.settle();
  for (Duration pause : {5ms, 10ms, 20ms}) w.time.advance(pause);
  CHECK(w.reconcile.numbers().failed == 3);
  CHECK(w.reconcile.numbers().done == 1);
  CHECK_FALSE(w.ended);
}

TEST_CASE("run ends only when its handlers have ended", "[k8s][reconcile_loop]") {
  World w;
  w.script["a"] = {w.busy(1h)};
  w.script["b"] = {w.busy(1h)};
  w.start(2);
  w.reconcile.add("a");
  w.reconcile.add("b");
  w.time.settle();
  REQUIRE(w.running.size() == 2);
  w.stop.emit(asio::cancellation_type::terminal);
  w.time.settle();
  REQUIRE(w.ended);
  CHECK(w.ended->has_value());
  CHECK(w.running.empty());
  CHECK(w.time.sleeping() == 0);
}

TEST_CASE("a key whose handler was cancelled is worked by the next run", "[k8s][reconcile_loop]") {
  World w;
  w.script["a"] = {w.busy(1h)};
  w.start(1);
  w.reconcile.add("a");
  w.time.settle();
  w.stop.emit(asio::cancellation_type::terminal);
  w.time.settle();
  CHECK(w.reconcile.numbers().waiting == 1);
  w.start(1);
  CHECK(w.started == Keys{"a", "a"});
}
