// on_loop(): how a thread that is not the loop's (gRPC's) asks the loop.
#pragma once

#include "base/async.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <future>

namespace nvdra {

// Runs `work` on the loop and waits for its answer. Never call it on the loop's own thread, and
// keep the loop running until every caller has returned (docs/architecture.md, "Stop order").
template <class T>
T on_loop(asio::io_context& loop, Async<T> work) {
  std::promise<T> promise;
  auto answer = promise.get_future();
  asio::co_spawn(
      loop,
      [p = std::move(promise), w = std::move(work)]() mutable -> Async<void> {
        try {
          p.set_value(co_await std::move(w));
        } catch (...) {
          p.set_exception(std::current_exception());
        }
      },
      asio::detached);
  return answer.get();
}

}  // namespace nvdra
