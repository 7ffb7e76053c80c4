// ReconcileLoop: a queue, a handler, and back-off per key.
#pragma once

#include "base/backoff.hpp"
#include "base/task_group.hpp"
#include "k8s/work_queue.hpp"

#include <functional>
#include <map>
#include <optional>

namespace nvdra::k8s {

// What a reconcile says at its end: settled (nullopt), or "look again after this time".
using Again = std::optional<Duration>;

class ReconcileLoop {
public:
  // Called for one key; never for the same key twice at once. An error is logged with the key and
  // retried after a back-off of 5 ms doubling to 30 s (jitter 0.25); success resets it. An
  // exception other than cancellation is contained: logged as an error of that key. Conflicts are
  // retried alike, but logged at level 4 only. A handler that the end of run() cancelled leaves its
  // key queued for a later run().
  using Handler = std::function<Async<Result<Again>>(std::string key)>;

  ReconcileLoop(asio::any_io_executor executor, Time& time, Random random, std::string name,
                Handler handler);

  void add(std::string key) { queue_.add(std::move(key)); }
  void add_after(std::string key, Duration delay) { queue_.add_after(std::move(key), delay); }

  // Works with up to `workers` keys at once, until cancelled; running handlers are cancelled too
  // and have ended when this returns.
  Async<Result<void>> run(int workers);

  // For metrics: work done, failed, and now waiting.
  struct Numbers {
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
    std::size_t waiting = 0;
  };
  Numbers numbers() const;

private:
  Async<Result<void>> work();
  Async<void> work_one(std::string key);
  void settle(const std::string& key, const Again& again);
  void retry(const std::string& key, const Error& error);

  asio::any_io_executor executor_;
  Time& time_;
  Random random_;
  std::string name_;
  Handler handler_;
  WorkQueue queue_;
  std::map<std::string, Backoff> backoff_;
  Numbers numbers_;
};

}  // namespace nvdra::k8s
