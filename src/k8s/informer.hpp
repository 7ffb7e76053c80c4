// Informer: one watched type: its store and the reflector that fills it.
//   Informer domains{loop, client, time, real_random(), {.type = compute_domains}};
//   group.spawn("computedomains", domains.run());
#pragma once

#include "base/within.hpp"
#include "k8s/reflector.hpp"

#include <fmt/format.h>

namespace nvdra::k8s {

class Informer {
public:
  Informer(asio::any_io_executor executor, Client& client, Time& time, Random random, Scope scope)
      : store(std::move(executor)),
        time_(time),
        reflector_(client, time, std::move(random), std::move(scope), store) {}
  Informer(const Informer&) = delete;  // the reflector knows the store's place
  Informer& operator=(const Informer&) = delete;

  Store store;

  // Until cancelled.
  Async<Result<void>> run() { return reflector_.run(); }

  // Why the store is not to be relied on at the moment, or "". For readiness and start-up logs.
  std::string trouble() const {
    if (!reflector_.trouble().empty() || store.ready()) return reflector_.trouble();
    return fmt::format("list {}: no answer yet", reflector_.scope().type.plural);
  }
  std::uint64_t skipped() const { return reflector_.skipped(); }

  // Waits for the first list. After `limit` an error says what is missing.
  Async<Result<void>> wait_ready(Duration limit) {
    Result<void> ready = co_await within(time_, limit, filled());
    if (!ready) co_return refuse(trouble());
    co_return ready;
  }

private:
  Async<Result<void>> filled() {
    co_await store.wait_ready();
    co_return ok();
  }

  Time& time_;
  Reflector reflector_;
};

}  // namespace nvdra::k8s
