// Holding a claim: rounds until it is ready, refused, or its time is over.
#include "base/log.hpp"
#include "base/within.hpp"
#include "roles/kubelet_plugin/driver.hpp"
#include "roles/kubelet_plugin/users.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {

Async<Result<dra::Prepared>> Driver::hold(dra::ClaimRef claim, dra::Deadline deadline) {
  ++running_[claim.uid];
  struct Leave {
    Driver& driver;
    ClaimUid uid;
    ~Leave() {
      if (--driver.running_[uid] > 0) return;
      driver.running_.erase(uid);
      driver.unprepares_.erase(uid);
    }
  } leave{*this, claim.uid};

  Call call{claim, unprepares_[claim.uid], {}};
  call.begun_at = parts_.time.now();
  Instant until = deadline - config_.answer_margin;
  Result<Answer> answer = co_await rounds(&call, until, parts_.gate.follows());
  if (answer && !*answer) answer = co_await rounds_beside_gate(&call, until);
  if (!answer) co_return std::move(answer).failure();
  co_return **std::move(answer);
}

// The claim waits for the gate: what the gate knows is kept fresh meanwhile.
Async<Result<Driver::Answer>> Driver::rounds_beside_gate(Call* call, Instant until) try {
  using namespace asio::experimental::awaitable_operators;
  // `a || b` goes on waiting for a when b throws.
  auto first = co_await (parts_.gate.follow(call->gate_domain) ||
                         detail::outcome_of(rounds(call, until, false)));
  if (first.index() == 0) {
    Result<void> ended = std::get<0>(std::move(first));
    if (!ended) co_return std::move(ended).failure();
    co_return refuse("the watch on the IMEX daemon's readiness has ended");
  }
  detail::Outcome<Answer> outcome = std::get<1>(std::move(first));
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  co_return *std::move(outcome.result);
} catch (const asio::multiple_exceptions& both) {
  std::rethrow_exception(both.first_exception());
}

// Until there is an answer; with `to_gate`, also until only the gate is missing (no answer then).
Async<Result<Driver::Answer>> Driver::rounds(Call* call, Instant until, bool to_gate) {
  const dra::ClaimRef& claim = call->claim;
  for (;;) {
    auto seen = parts_.news.count();
    Attempt<dra::Prepared> attempt = co_await round(*call);
    Trouble* trouble = trouble_of(attempt);
    if (!trouble) co_return Answer(std::get<dra::Prepared>(std::move(attempt)));
    std::string text = fmt::format("error preparing devices for claim '{}/{}:{}': {}", claim.space,
                                   claim.name, claim.uid.value, trouble->text);
    if (trouble->kind == Trouble::Kind::permanent) {
      LOG_INFO(0, log::Plain{"Permanent error: " + text});
      co_return Answer(refuse(text));
    }
    Duration left = until - parts_.time.now();
    if (left <= Duration::zero()) {
      LOG_INFO(0, "Claim is not ready, the kubelet will ask again",
               {{"claim", claim.text()}, {"err", trouble->text}});
      co_return Answer(refuse(text));
    }
    if (to_gate && call->at_gate) co_return Answer();
    if (parts_.time.now() - call->begun_at >= config_.tell_after) {
      bool given_up = co_await nobody_waits(*call);
      if (given_up) {
        LOG_INFO(1, "Nobody waits for the claim any more", {{"claim", claim.text()}});
        co_return Answer(refuse(text));
      }
      tell_pods(*call, text);
    }
    LOG_INFO(4, "Holding claim", {{"claim", claim.text()}, {"err", trouble->text}});
    co_await pause(*call, seen, std::min(left, config_.look_again));
  }
}

void Driver::tell_pods(Call& call, const std::string& text) {
  if (!parts_.events || !call.wanted || call.told == text) return;
  call.told = text;
  for (k8s::ObjectReference& pod : pods_of(call.wanted->status, call.claim.space))
    parts_.events->record(k8s::EventType::warning, std::move(pod), "FailedPrepareDynamicResources",
                          "Failed to prepare dynamic resources: " + text);
}

Async<bool> Driver::nobody_waits(Call& call) {
  Instant now = parts_.time.now();
  if (!call.wanted || now - call.asked < config_.ask_pods) co_return false;
  call.asked = now;
  bool leaving =
      co_await all_leaving(parts_.client, pods_of(call.wanted->status, call.claim.space));
  co_return leaving;
}

// Until something changes that the claim waits for, or `limit` has passed.
Async<void> Driver::pause(const Call& call, std::uint64_t seen, Duration limit) {
  auto news = [](Event& news, std::uint64_t before) -> Async<Result<void>> {
    co_await news.wait(before);
    co_return ok();
  };
  Result<void> woken = co_await within(
      parts_.time, limit, call.at_gate ? parts_.gate.wait_change(seen) : news(parts_.news, seen));
  (void)woken;  // a time-out only means: look again
}

}  // namespace nvdra::roles::kubelet_plugin
