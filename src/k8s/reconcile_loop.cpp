#include "k8s/reconcile_loop.hpp"

#include "base/log.hpp"
#include "k8s/status.hpp"

#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>

namespace nvdra::k8s {
namespace {

constexpr Backoff::Shape error_pacing{
    .first = 5ms, .cap = 30s, .jitter = 0.25, .reset_after = Duration::max()};

Failure failure_of_exception(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return refuse(fmt::format("exception: {}", e.what()));
  } catch (...) {
    return refuse("exception of unknown type");
  }
}

// Gives the key back however the handler ends.
class Running {
public:
  Running(WorkQueue& queue, const std::string& key) : queue_(queue), key_(key) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { queue_.done(key_); }

private:
  WorkQueue& queue_;
  const std::string& key_;
};

}  // namespace

ReconcileLoop::ReconcileLoop(asio::any_io_executor executor, Time& time, Random random,
                             std::string name, Handler handler)
    : executor_(executor),
      time_(time),
      random_(std::move(random)),
      name_(std::move(name)),
      handler_(std::move(handler)),
      queue_(std::move(executor), time) {}

Async<Result<void>> ReconcileLoop::run(int workers) {
  TaskGroup group(executor_);
  for (int i = 0; i < workers; ++i) group.spawn(name_, work());
  Result<void> ended = co_await group.join();
  co_return ended;
}

Async<Result<void>> ReconcileLoop::work() {
  for (;;) {
    std::string key = co_await queue_.next();
    co_await work_one(std::move(key));
  }
}

Async<void> ReconcileLoop::work_one(std::string key) {
  Running running(queue_, key);
  std::exception_ptr thrown;
  Result<Again> ended = Again{};
  try {
    ended = co_await handler_(key);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown) {
    // An operation_aborted that nobody asked for is a mistake like any other.
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
      queue_.add(key);
      std::rethrow_exception(thrown);
    }
    ended = failure_of_exception(thrown);
  }
  ended ? settle(key, *ended) : retry(key, ended.error());
}

void ReconcileLoop::settle(const std::string& key, const Again& again) {
  ++numbers_.done;
  backoff_.erase(key);
  if (again) queue_.add_after(key, *again);
}

void ReconcileLoop::retry(const std::string& key, const Error& error) {
  ++numbers_.failed;
  Random shared = [this] { return random_(); };  // a copy of the source would repeat its numbers
  Backoff& backoff = backoff_.try_emplace(key, error_pacing, std::move(shared)).first->second;
  Duration pause = backoff.next(time_.now());
  auto after = fmt::format("{}ms", std::chrono::ceil<std::chrono::milliseconds>(pause).count());
  // Somebody else wrote first: expected among several writers, and cured by looking again.
  if (error.code == Errc::conflict) {
    LOG_INFO(4, "Reconcile met a conflict, retrying",
             {{"loop", name_}, {"key", key}, {"after", after}, {"err", error.text()}});
  } else {
    LOG_ERROR("Reconcile failed, retrying", {{"loop", name_},
                                             {"key", key},
                                             {"attempt", backoff.failures()},
                                             {"after", after},
                                             {"err", error.text()}});
  }
  queue_.add_after(key, pause);
}

ReconcileLoop::Numbers ReconcileLoop::numbers() const {
  Numbers now = numbers_;
  now.waiting = queue_.waiting();
  return now;
}

}  // namespace nvdra::k8s
