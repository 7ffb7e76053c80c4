// within(): the one spelling of a timeout.
#pragma once

#include "base/time.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace nvdra {

// The result of `work`, or errc::timed_out once `limit` has passed. Work that is late is cancelled
// and has ended before this returns.
template <class T>
Async<Result<T>> within(Time& time, Duration limit, Async<Result<T>> work) try {
  using namespace asio::experimental::awaitable_operators;
  auto first = co_await (std::move(work) || time.sleep(limit));
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return fail(make_error_code(boost::system::errc::timed_out));
} catch (const asio::multiple_exceptions& both) {
  // A cancelled `a || b` throws multiple_exceptions; callers expect operation_aborted.
  std::rethrow_exception(both.first_exception());
}

}  // namespace nvdra
