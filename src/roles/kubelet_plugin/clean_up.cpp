#include "roles/kubelet_plugin/clean_up.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/within.hpp"
#include "cdi/names.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/recovery.hpp"

#include <fmt/format.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr Duration period = 10min;
constexpr Duration claim_limit = 20s;
constexpr Duration unprepare_limit = 45s;

}  // namespace

CleanUp::CleanUp(DriverParts parts, Driver& driver, Random random)
    : CleanUp(parts, driver, std::move(random), Pace{}) {}

CleanUp::CleanUp(DriverParts parts, Driver& driver, Random random, Pace pace)
    : parts_(parts), driver_(driver), random_(std::move(random)), pace_(pace) {}

Async<Result<void>> CleanUp::run() {
  TaskGroup tasks(parts_.executor);
  tasks.spawn("clean up", run_passes());
  if (parts_.directories) tasks.spawn("look after domains", watch_domains());
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<void>> CleanUp::run_passes() {
  for (;;) {
    co_await pass();
    // Spread over the nodes, which all started together after a roll-out.
    co_await parts_.time.sleep(period +
                               std::chrono::duration_cast<Duration>(period * 0.2 * random_()));
  }
}

Async<bool> CleanUp::recover() {
  Result<std::size_t> entered =
      co_await rebuild_checkpoint(parts_, driver_.node(), resource_version_);
  if (!entered)
    LOG_WARNING("Cannot tell whether a claim without an entry is in use, removing nothing yet",
                {{"err", entered.error().text()}});
  co_return entered.has_value();
}

Async<void> CleanUp::pass() {
  bool recovered = co_await recover();
  std::vector<std::pair<dra::ClaimRef, bool>> claims;
  for (const auto& [uid, entry] : parts_.checkpoint.current().entries()) {
    bool started = entry->claim.state == dra::ClaimState::started;
    if (!started && entry->claim.state != dra::ClaimState::completed) continue;
    if (entry->claim.name.empty()) {
      LOG_INFO(4, "Clean-up skips an entry without a name", {{"uid", uid.value}});
      continue;
    }
    claims.emplace_back(dra::ClaimRef{entry->claim.space, entry->claim.name, uid}, started);
  }
  for (const auto& [claim, started] : claims) {
    bool stale = co_await is_stale(claim, started);
    if (!stale) continue;
    Result<void> undone = co_await driver_.unprepare(claim, parts_.time.now() + unprepare_limit);
    if (undone) {
      LOG_INFO(0, log::Plain{fmt::format("Checkpointed RC cleanup: unprepared stale claim: {}",
                                         claim.text())});
    } else {
      LOG_WARNING("Cannot unprepare a stale claim, will try again",
                  {{"err", undone.error().text()}});
    }
  }
  co_await drop_expired();
  if (!recovered) co_return;
  drop_files();
  co_await release_label();
  Result<void> dropped = co_await drop_directories();
  if (!dropped) complain(dropped.error());
}

Async<bool> CleanUp::is_stale(dra::ClaimRef claim, bool started) {
  Result<k8s::Object> found =
      co_await within(parts_.time, claim_limit,
                      parts_.client.get(claims(resource_version_), {claim.space, claim.name}));
  if (!found) co_return found.error().code == k8s::Errc::not_found;
  if (found->uid() != claim.uid.value) co_return true;
  if (started)
    LOG_INFO(4, log::Plain{fmt::format("partially prepared claim not stale: {}", claim.text())});
  co_return false;
}

Async<void> CleanUp::drop_expired() {
  if (expired(parts_.checkpoint.current(), parts_.time.wall()).empty()) co_return;
  Result<void> done = co_await parts_.checkpoint.update([&](dra::Checkpoint& checkpoint) {
    for (const ClaimUid& uid : expired(checkpoint, parts_.time.wall())) {
      LOG_INFO(4, "Dropping an aborted claim whose lifetime is over", {{"uid", uid.value}});
      checkpoint.erase(uid);
    }
    return ok();
  });
  if (!done)
    LOG_WARNING("Cannot drop aborted claims, will try again", {{"err", done.error().text()}});
}

void CleanUp::drop_files() {
  Result<std::vector<ClaimUid>> files = parts_.cdi.claims();
  if (!files) {
    LOG_WARNING("Cannot list the CDI files", {{"err", files.error().text()}});
    return;
  }
  for (const ClaimUid& uid : *files) {
    if (parts_.checkpoint.current().find(uid)) continue;
    Result<void> removed = parts_.cdi.remove(cdi::claim_file(uid));
    if (!removed) LOG_WARNING("Cannot remove a CDI file", {{"err", removed.error().text()}});
    if (removed)
      LOG_INFO(1, "Removed the CDI file of a claim that is not prepared", {{"uid", uid.value}});
  }
}

}  // namespace nvdra::roles::kubelet_plugin
