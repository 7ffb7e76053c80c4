#include "base/log.hpp"
#include "base/within.hpp"
#include "cdi/names.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/driver.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {
namespace {

// So long before the end of a call no further request is begun.
constexpr Duration last_request = 500ms;
// For a label of the other mode.
constexpr Duration left_label_limit = 3s;

}  // namespace

Async<Result<void>> Driver::unprepare(dra::ClaimRef claim, dra::Deadline deadline) {
  Metrics::Running running = parts_.metrics.begin(Metrics::Operation::unprepare);
  if (running_.contains(claim.uid)) ++unprepares_[claim.uid];
  Instant until = deadline - config_.answer_margin;
  Result<void> undone = co_await within(parts_.time, until - parts_.time.now(), undo(claim, until));
  if (!undone) {
    parts_.metrics.unprepare_failed();
    Failure failure = std::move(undone).failure().during(
        fmt::format("error unpreparing devices for claim '{}/{}:{}'", claim.space, claim.name,
                    claim.uid.value));
    LOG_INFO(0, log::Plain{failure.error.text()});
    co_return failure;
  }
  running.succeeded();
  parts_.metrics.count_devices(parts_.checkpoint.current());
  parts_.news.notify();
  co_return ok();
}

// The node label goes with the last claim of its domain. What may heal is tried again in the same
// call: after an error the kubelet would come back only 60 to 90 s later.
Async<Result<void>> Driver::release_node(ClaimUid uid, DomainUid domain, Instant until) {
  if (domain.empty()) co_return ok();
  auto needed = [&] { return needs_node(parts_.checkpoint.current(), domain, uid); };
  if (parts_.left_label)
    co_await parts_.left_label->release(domain, needed,
                                        std::min(left_label_limit, until - parts_.time.now()));
  if (!parts_.label) co_return ok();
  Backoff pauses({.first = 200ms, .cap = 3s}, real_random());
  for (;;) {
    Result<void> removed = co_await parts_.label->remove(domain, needed);
    if (removed) co_return ok();
    Instant now = parts_.time.now();
    Duration pause = pauses.next(now);
    if (!k8s::is_retryable(removed.error()) || now + pause + last_request >= until)
      co_return std::move(removed).failure().during("remove the node label");
    co_await parts_.time.sleep(pause);
  }
}

Async<void> Driver::keep_node() {
  if (!parts_.label) co_return;
  Result<DomainUid> holder = co_await parts_.label->holder();
  if (!holder || !holder->empty()) co_return;
  for (const auto& [uid, domain] : channels_in_use(parts_.checkpoint.current())) {
    if (leaving_.contains(uid)) continue;
    k8s::ObjectPtr known = parts_.domains.cached(domain.value);
    if (!known || known->deleting()) continue;
    // The cache may lag behind a deletion, which takes the label off for good.
    Result<k8s::Object> found = co_await parts_.client.get(compute_domains(), known->key());
    if (!found || found->uid() != domain.value || found->deleting()) continue;
    // An unprepare of the claim takes the label off before the entry.
    Turns::Turn turn = co_await turns_.take(uid);
    bool in_use = channels_in_use(parts_.checkpoint.current()).contains(uid);
    if (!in_use || leaving_.contains(uid)) continue;
    Result<NodeLabel::Put> put = co_await parts_.label->put(domain);
    if (put && put->changed)
      LOG_WARNING("The node label was gone while pods use the domain, it is there again",
                  {{"node", config_.node.value}, {"domain", known->key().text()}});
    if (!put) LOG_WARNING("Cannot put the node label back", {{"err", put.error().text()}});
    co_return;
  }
}

// Label and file go first: if that fails, the entry still knows of them (18.1 no. 17, report 38).
Async<Result<void>> Driver::undo(dra::ClaimRef claim, Instant until) {
  Turns::Turn turn = co_await turns_.take(claim.uid);
  Result<void> refreshed = parts_.checkpoint.refresh();
  if (!refreshed) LOG_WARNING("Cannot read the checkpoint", {{"err", refreshed.error().text()}});
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(claim.uid);
  Undo what = undo_of(entry);
  if (entry && what == Undo::nothing) {
    LOG_INFO(2, log::Plain{fmt::format("Unprepare noop: claim in PrepareAborted state: {}",
                                       claim.text())});
    co_return ok();
  }
  if (entry && what != Undo::nothing) {
    leaving_.insert(claim.uid);
    DomainUid domain = channel_domain(*entry);
    Result<void> released = co_await release_node(claim.uid, std::move(domain), until);
    if (!released) co_return std::move(released).failure();
  }
  Result<void> removed = parts_.cdi.remove(cdi::claim_file(claim.uid));
  if (!removed) co_return std::move(removed).failure();
  if (what == Undo::nothing) {
    LOG_INFO(2, "Unprepare noop: claim is not known", {{"claim", claim.text()}});
    co_return ok();
  }

  std::string now = rfc3339(parts_.time.wall());
  Result<void> written = co_await parts_.checkpoint.update([&](dra::Checkpoint& checkpoint) {
    const dra::CheckpointClaim* at = checkpoint.find(claim.uid);
    if (!at) return ok();
    if (undo_of(at) == Undo::completed) {
      checkpoint.erase(claim.uid);
      return ok();
    }
    dra::CheckpointClaim given_up = *at;
    given_up.state = dra::ClaimState::aborted;
    given_up.groups.clear();
    given_up.name = claim.name;
    given_up.space = claim.space;
    given_up.aborted_at = now;
    checkpoint.put(claim.uid, std::move(given_up));
    return ok();
  });
  if (!written) co_return std::move(written).failure();
  leaving_.erase(claim.uid);
  if (what == Undo::started) {
    LOG_INFO(6, log::Plain{fmt::format("Marked claim PrepareAborted in checkpoint: {}/{}:{}",
                                       claim.space, claim.name, claim.uid.value)});
  } else {
    LOG_INFO(1, "Unprepared claim", {{"claim", claim.text()}});
  }
  co_return ok();
}

}  // namespace nvdra::roles::kubelet_plugin
