// within(): the one spelling of a timeout.
#pragma once

#include "base/time.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <exception>
#include <optional>

namespace nvdra {

namespace detail {

template <class T>
struct Outcome {
  std::optional<Result<T>> result;
  std::exception_ptr thrown;
};

// `a || b` goes on waiting for b when a throws; so what `work` throws is carried out as a value.
template <class T>
Async<Outcome<T>> outcome_of(Async<Result<T>> work) {
  Outcome<T> outcome;
  try {
    outcome.result.emplace(co_await std::move(work));
  } catch (...) {
    outcome.thrown = std::current_exception();
  }
  co_return outcome;
}

}  // namespace detail

// The result of `work`, or errc::timed_out once `limit` has passed. Work that is late is cancelled
// and has ended before this returns. What `work` throws is thrown at once.
template <class T>
Async<Result<T>> within(Time& time, Duration limit, Async<Result<T>> work) try {
  using namespace asio::experimental::awaitable_operators;
  auto first = co_await (detail::outcome_of(std::move(work)) || time.sleep(limit));
  if (first.index() == 1) co_return fail(make_error_code(boost::system::errc::timed_out));
  detail::Outcome<T> outcome = std::get<0>(std::move(first));
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  co_return *std::move(outcome.result);
} catch (const asio::multiple_exceptions& both) {
  // A cancelled `a || b` throws multiple_exceptions; callers expect operation_aborted.
  std::rethrow_exception(both.first_exception());
}

}  // namespace nvdra
