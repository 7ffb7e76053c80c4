// Async<T>: a coroutine of the one loop. The only place that names Asio's awaitable.
// Rules: one co_await per statement, its result bound to a name; a coroutine that is spawned takes
// its arguments by value; only Async<Result<void>> is spawned (docs/pitfalls.md).
#pragma once

#include "base/result.hpp"

#include <boost/asio/awaitable.hpp>

namespace nvdra {

namespace asio = boost::asio;

template <class T>
using Async = asio::awaitable<T, asio::any_io_executor>;

}  // namespace nvdra
