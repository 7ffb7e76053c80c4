#include "k8s/permits.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace nvdra::k8s {

Async<Permits::Permit> Permits::take() {
  if (free_ > 0 && waiting_.empty()) {
    --free_;
    co_return Permit(this);
  }
  auto executor = co_await asio::this_coro::executor;
  Waiter self{asio::steady_timer(executor, asio::steady_timer::time_point::max())};
  auto place = waiting_.insert(waiting_.end(), &self);
  auto [ignored] = co_await self.bell.async_wait(asio::as_tuple(asio::use_awaitable));
  (void)ignored;
  // Granted and cancelled at once: the permit exists, and goes back with its owner.
  if (self.granted) co_return Permit(this);
  waiting_.erase(place);
  throw boost::system::system_error(asio::error::operation_aborted);
}

void Permits::give_back() {
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  Waiter* first = waiting_.front();
  waiting_.pop_front();
  first->granted = true;
  first->bell.cancel();
}

}  // namespace nvdra::k8s
