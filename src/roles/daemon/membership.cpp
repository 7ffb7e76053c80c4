#include "roles/daemon/membership.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "base/within.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::daemon {
namespace {

constexpr Duration watch_lag = 1s;      // how long a change may take to be shown
constexpr Duration reclaim_after = 5s;  // a pod that is replaced is told to stop long before
constexpr Duration between_leaves = 200ms;
constexpr Duration room_for_one = 15ms;  // a join takes about that long
constexpr Duration most_room = 250ms;
constexpr int free_writes = 8;  // in a row; more than a member needs to join and turn Ready

bool is_refusal(const Error& error) {
  return error.code == k8s::Errc::conflict || error.code == k8s::Errc::already_exists ||
         error.code == k8s::Errc::not_found;
}

}  // namespace

Duration contention_pause(int refusals, double random) {
  constexpr int doublings = 4;
  const Duration window = Duration(100ms) * (1 << std::min(refusals, doublings));
  return std::chrono::duration_cast<Duration>(window * random);
}

Membership::Membership(Parts parts, Place place, Self self)
    : parts_(std::move(parts)),
      place_(std::move(place)),
      self_(std::move(self)),
      informer_(parts_.executor, parts_.client, parts_.time, parts_.random,
                {.type = place_.type,
                 .space = place_.key.space,
                 .field_selector = "metadata.name=" + place_.key.name}),
      backoff_({.first = 200ms, .cap = 6s}, parts_.random),
      pace_({.first = 10ms, .cap = 2s, .reset_after = 30s}, parts_.random) {
  informer_.store.on_change([this](const auto&, const auto&) { parts_.news.notify(); });
}

k8s::ObjectPtr Membership::object() const {
  return informer_.store.get(place_.key);
}

Async<Result<void>> Membership::run() {
  TaskGroup tasks(parts_.executor);
  tasks.spawn("watch " + place_.type.plural, informer_.run());
  tasks.spawn("keep the entry", keep());
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<void>> Membership::keep() {
  for (;;) {
    if (!informer_.store.ready()) {
      set_trouble(informer_.trouble());
      Result<void> filled = co_await informer_.wait_ready(watch_lag);
      (void)filled;
      continue;
    }
    const auto news = parts_.news.count();
    const k8s::ObjectPtr seen = object();
    const bool take_over =
        !joined_ || (displaced_ && parts_.time.now() - *displaced_ >= reclaim_after);
    Move move = next_move(seen.get(), place_, self_, parts_.ready(), take_over);
    const auto* stuck = std::get_if<Stuck>(&move);
    if (!stuck || !stuck->another_pod) displaced_.reset();
    if (stuck && stuck->another_pod && !displaced_) displaced_ = parts_.time.now();
    if (stuck || std::holds_alternative<Settled>(move)) {
      if (!stuck) joined_ = true;
      set_trouble(stuck ? stuck->sentence : "");
      co_await wait(stuck, news);
      continue;
    }
    const auto* patch = std::get_if<Patch>(&move);
    const bool outdated = patch && co_await gave_way(patch->crowd, seen);
    if (!outdated) co_await perform(std::move(move), seen);
  }
}

Async<void> Membership::wait(const Stuck* stuck, std::uint64_t news) {
  if (!stuck || !stuck->another_pod) {
    co_await parts_.news.wait(news);
    co_return;
  }
  const Duration left = *displaced_ + reclaim_after - parts_.time.now();
  co_await parts_.news.wait_for(parts_.time, left, news);
}

// Who joins a crowd does not do it at the same moment as the others. True: the list is another one
// by now.
Async<bool> Membership::gave_way(int crowd, k8s::ObjectPtr seen) {
  if (crowd == 0 || gave_way_ || contention_ > 0) co_return false;
  gave_way_ = true;
  co_await parts_.time.sleep(std::chrono::duration_cast<Duration>(
      std::min<Duration>(room_for_one * crowd, most_room) * parts_.random()));
  co_return object() != seen;
}

Async<void> Membership::perform(Move move, k8s::ObjectPtr seen) {
  Result<k8s::Object> written = co_await send(move);
  if (!written) {
    co_await learn_from(written.error(), seen);
    co_return;
  }
  const auto* patch = std::get_if<Patch>(&move);
  LOG_INFO(1, "Updated the list of members",
           {{"object", place_.text()}, {"what", patch ? patch->what : "create and join"}});
  contention_ = 0;
  gave_way_ = false;
  backoff_.reset();
  write_trouble_.clear();
  informer_.store.note_written(*std::move(written));
  co_await keep_pace();
}

// Who undoes each write, a garbage collector for instance, gets the next one ever later.
Async<void> Membership::keep_pace() {
  const Duration pause = pace_.next(parts_.time.now());
  if (pace_.failures() <= free_writes) co_return;
  if (pace_.failures() == free_writes + 1)
    LOG_WARNING("Somebody undoes what this daemon writes again and again, writing more slowly",
                {{"object", place_.text()}, {"node", self_.node.value}});
  co_await parts_.time.sleep(pause);
}

Async<Result<k8s::Object>> Membership::send(const Move& move) {
  if (const auto* create = std::get_if<Create>(&move)) {
    Result<k8s::Object> made =
        co_await parts_.client.create(place_.type, place_.key.space, create->object);
    co_return made;
  }
  Json operations = std::get<Patch>(move).operations;
  Result<k8s::Object> patched = co_await parts_.client.patch(
      place_.type, place_.key, std::move(operations),
      {.kind = k8s::PatchKind::json, .subresource = place_.subresource()});
  co_return patched;
}

Async<void> Membership::learn_from(const Error& error, k8s::ObjectPtr seen) {
  if (is_refusal(error)) {
    ++refused_;
    const Duration pause = contention_pause(contention_++, parts_.random());
    LOG_INFO(4, "Somebody else was faster, trying again", {{"err", error.text()}});
    co_await catch_up(std::move(seen));
    co_await parts_.time.sleep(pause);
    co_return;
  }
  const Duration pause = backoff_.next(parts_.time.now());
  if (error.text() != write_trouble_)
    LOG_WARNING("Cannot update the list of members, retrying", {{"err", error.text()}});
  write_trouble_ = error.text();
  // A member whose news cannot be written at the moment is a member all the same.
  const k8s::ObjectPtr known = object();
  if (!known || !is_member(*known, place_, self_)) set_trouble(error.text());
  co_await parts_.time.sleep(pause);
  // A 422 has its cause in the object, which may be another one by now.
  if (!k8s::is_retryable(error)) co_await look();
}

// Waits until the watch shows what came between, or asks when it does not.
Async<void> Membership::catch_up(k8s::ObjectPtr seen) {
  Result<void> shown = co_await within(parts_.time, watch_lag, newer_than(std::move(seen)));
  if (!shown) co_await look();
}

Async<void> Membership::look() {
  Result<k8s::Object> found = co_await parts_.client.get(place_.type, place_.key);
  if (found) {
    informer_.store.note_written(*std::move(found));
  } else if (found.error().code == k8s::Errc::not_found) {
    const k8s::ObjectPtr known = object();
    if (known) informer_.store.note_deleted(place_.key, known->uid());
  }
}

Async<Result<void>> Membership::newer_than(k8s::ObjectPtr seen) {
  Event& changes = informer_.store.changes();
  auto count = changes.count();
  while (object() == seen) count = co_await changes.wait(count);
  co_return ok();
}

Async<Result<bool>> Membership::leave(Duration limit) {
  Result<bool> gone = co_await within(parts_.time, limit, keep_leaving());
  if (gone) co_return gone;
  co_return refuse(
      fmt::format("the entry of node {} stays in {} until the controller removes it: no success "
                  "within {:g} s{}",
                  self_.node.value, place_.text(), std::chrono::duration<double>(limit).count(),
                  leave_trouble_.empty() ? "" : ", at last: " + leave_trouble_));
}

Async<Result<bool>> Membership::keep_leaving() {
  // Without a list nobody knows whether an earlier run of this container has left an entry.
  if (!informer_.store.ready()) co_await look();
  for (;;) {
    Result<bool> gone = co_await take_out();
    if (gone) co_return gone;
    leave_trouble_ = gone.error().text();
    // Others leave too, and with each the entries after it move up.
    co_await parts_.time.sleep(
        std::chrono::duration_cast<Duration>(between_leaves * (0.5 + parts_.random())));
    co_await look();
  }
}

Async<Result<bool>> Membership::take_out() {
  const k8s::ObjectPtr seen = object();
  const Move move = last_move(seen.get(), place_, self_);
  if (!std::holds_alternative<Patch>(move)) co_return false;
  CO_TRY(k8s::Object written, co_await send(move));
  informer_.store.note_written(std::move(written));
  co_return true;
}

void Membership::set_trouble(std::string trouble) {
  if (trouble == trouble_) return;
  if (!trouble.empty()) LOG_INFO(1, "Not a member", {{"why", trouble}});
  trouble_ = std::move(trouble);
  parts_.news.notify();
}

}  // namespace nvdra::roles::daemon
