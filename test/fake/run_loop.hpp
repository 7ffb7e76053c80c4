// run(): one coroutine, from its start to its end, on a loop of real time.
#pragma once

#include "base/time.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <optional>
#include <stdexcept>

namespace nvdra::fake {

// Runs `loop` until `work` has ended and returns its answer or throws what it threw. Throws
// runtime_error when it has not ended within `limit`; then the test is over, `work` still waits.
template <class T>
T run(asio::io_context& loop, Async<T> work, Duration limit = 20s) {
  std::optional<T> answer;
  std::exception_ptr thrown;
  bool ended = false;
  asio::co_spawn(
      loop,
      [](Async<T> task, std::optional<T>* into) -> Async<void> {
        into->emplace(co_await std::move(task));
      }(std::move(work), &answer),
      [&](std::exception_ptr error) {
        thrown = error;
        ended = true;
      });
  loop.restart();
  Instant deadline = Clock::now() + limit;
  while (!ended && Clock::now() < deadline) loop.run_one_until(deadline);
  if (!ended) {
    loop.stop();
    throw std::runtime_error("the coroutine did not end within its limit");
  }
  if (thrown) std::rethrow_exception(thrown);
  return *std::move(answer);
}

}  // namespace nvdra::fake
