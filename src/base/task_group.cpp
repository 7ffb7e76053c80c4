#include "base/task_group.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cassert>

namespace nvdra {

bool is_cancellation(const std::exception_ptr& thrown) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : executor_(executor), empty_(executor, asio::steady_timer::time_point::max()) {}

TaskGroup::~TaskGroup() {
  assert(children_.empty() && "join() before the group goes");
}

void TaskGroup::spawn(std::string name, Async<Result<void>> task) {
  auto child = children_.emplace(children_.end());
  auto handler = [this, child, name = std::move(name)](std::exception_ptr thrown,
                                                       Result<void> result) {
    ended(child, name, thrown, std::move(result));
  };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(child->slot(), std::move(handler)));
}

void TaskGroup::ended(std::list<asio::cancellation_signal>::iterator child, const std::string& name,
                      std::exception_ptr thrown, Result<void> result) {
  children_.erase(child);
  if (thrown && !is_cancellation(thrown) && !thrown_) thrown_ = thrown;
  if (!thrown && !result && !failure_) failure_ = std::move(result).failure().during(name);
  if (thrown_ || failure_) stop();
  if (children_.empty()) empty_.cancel();
}

void TaskGroup::stop() {
  // A child may end, and leave the list, while its signal is being emitted.
  for (auto child = children_.begin(); child != children_.end();) {
    auto next = std::next(child);
    child->emit(asio::cancellation_type::terminal);
    child = next;
  }
}

Async<Result<void>> TaskGroup::join() {
  co_await asio::this_coro::throw_if_cancelled(false);
  while (!children_.empty()) {
    auto [ignored] = co_await empty_.async_wait(asio::as_tuple(asio::use_awaitable));
    (void)ignored;
    auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) stop();
  }
  co_await asio::this_coro::throw_if_cancelled(true);

  if (thrown_) std::rethrow_exception(thrown_);
  if (failure_) co_return *std::move(failure_);
  co_return ok();
}

}  // namespace nvdra
