// TaskGroup: every task has a parent that waits for it.
#pragma once

#include "base/async.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

#include <exception>
#include <list>
#include <optional>
#include <string>

namespace nvdra {

// True when `thrown` is Asio's operation_aborted: somebody else's decision, not a failure.
bool is_cancellation(const std::exception_ptr& thrown);

// Runs children that all end before join() returns. The first child to fail stops the others; so
// does cancelling the coroutine that joins. A child that was stopped by stop() is not a failure.
// Must not be destroyed while children run (asserted): join() first.
class TaskGroup {
public:
  explicit TaskGroup(asio::any_io_executor executor);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts `task`; `name` prefixes its error.
  void spawn(std::string name, Async<Result<void>> task);
  // Asks all children to end (terminal cancellation).
  void stop();
  // Waits until no child is left; then the first failure, or ok. May be called again after more
  // spawn()s. Rethrows what a child threw unless that was cancellation.
  Async<Result<void>> join();

  std::size_t size() const { return children_.size(); }

private:
  void ended(std::list<asio::cancellation_signal>::iterator child, const std::string& name,
             std::exception_ptr thrown, Result<void> result);

  asio::any_io_executor executor_;
  asio::steady_timer empty_;
  std::list<asio::cancellation_signal> children_;
  std::optional<Failure> failure_;
  std::exception_ptr thrown_;
};

}  // namespace nvdra
