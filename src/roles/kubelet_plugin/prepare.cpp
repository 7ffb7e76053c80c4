#include "base/log.hpp"
#include "base/within.hpp"
#include "cdi/names.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/driver.hpp"
#include "roles/kubelet_plugin/users.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {

Driver::Driver(DriverParts parts, DriverConfig config)
    : parts_(parts), config_(std::move(config)), turns_(parts.executor) {}

Async<Result<dra::Prepared>> Driver::prepare(dra::ClaimRef claim, dra::Deadline deadline) {
  Metrics::Running running = parts_.metrics.begin(Metrics::Operation::prepare);
  Result<dra::Prepared> prepared = co_await hold(claim, deadline);
  if (!prepared) {
    parts_.metrics.prepare_failed();
    co_return std::move(prepared).failure();
  }
  running.succeeded();
  LOG_INFO(1, "Prepared claim", {{"claim", claim.text()}, {"devices", prepared->size()}});
  co_return prepared;
}

Async<Result<dra::Prepared>> Driver::hold(dra::ClaimRef claim, dra::Deadline deadline) {
  Instant begun = parts_.time.now();
  Instant until = deadline - config_.answer_margin;

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

  Call call{claim, unprepares_[claim.uid], {}, false, false, {}, {}};
  for (;;) {
    auto seen = parts_.news.count();
    Attempt<dra::Prepared> attempt = co_await round(call);
    Trouble* trouble = trouble_of(attempt);
    if (!trouble) co_return std::get<dra::Prepared>(std::move(attempt));
    std::string text = fmt::format("error preparing devices for claim '{}/{}:{}': {}", claim.space,
                                   claim.name, claim.uid.value, trouble->text);
    if (trouble->kind == Trouble::Kind::permanent) {
      LOG_INFO(0, log::Plain{"Permanent error: " + text});
      co_return refuse(text);
    }
    Duration left = until - parts_.time.now();
    if (left <= Duration::zero()) {
      LOG_INFO(0, "Claim is not ready, the kubelet will ask again",
               {{"claim", claim.text()}, {"err", trouble->text}});
      co_return refuse(text);
    }
    if (parts_.time.now() - begun >= config_.tell_after) {
      bool given_up = co_await nobody_waits(call);
      if (given_up) {
        LOG_INFO(1, "Nobody waits for the claim any more", {{"claim", claim.text()}});
        co_return refuse(text);
      }
      tell_pods(call, text);
    }
    LOG_INFO(4, "Holding claim", {{"claim", claim.text()}, {"err", trouble->text}});
    co_await pause(call, seen, std::min(left, config_.look_again));
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
      parts_.time, limit, call.at_gate ? parts_.gate.wait_change() : news(parts_.news, seen));
  (void)woken;  // a time-out only means: look again
}

bool Driver::unprepared_since(const Call& call) const {
  auto now = unprepares_.find(call.claim.uid);
  return now != unprepares_.end() && now->second != call.epoch;
}

Async<Attempt<dra::Prepared>> Driver::round(Call& call) {
  if (unprepared_since(call))
    co_return permanent("claim prepare was already aborted: the claim was unprepared meanwhile");
  // A claim that is in the checkpoint needs no API server to be answered.
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(call.claim.uid);
  if (entry && entry->state == dra::ClaimState::completed) {
    Attempt<dra::Prepared> known = co_await completed(call.claim);
    co_return known;
  }
  if (!call.wanted) {
    std::optional<Trouble> trouble = co_await fetch(call);
    if (trouble) co_return *std::move(trouble);
  }
  if (!call.begun) {
    Attempt<Begun> begun = co_await begin_once(call);
    if (Trouble* trouble = trouble_of(begun)) co_return std::move(*trouble);
    if (std::get<Begun>(begun) == Begun::completed) {
      Attempt<dra::Prepared> known = co_await completed(call.claim);
      co_return known;
    }
    call.begun = true;
  }
  std::optional<Trouble> trouble = co_await closed(call);
  call.at_gate = trouble.has_value() && facts().clique();
  if (trouble) co_return *std::move(trouble);
  Attempt<dra::Prepared> done = co_await finish(call);
  co_return done;
}

// Reads the claim and everything in it that can be wrong, without a trace.
Async<std::optional<Trouble>> Driver::fetch(Call& call) {
  const dra::ClaimRef& claim = call.claim;
  Result<k8s::Object> object =
      co_await parts_.client.get(claims(config_.resource_version), {claim.space, claim.name});
  if (!object && object.error().code == k8s::Errc::not_found)
    co_return permanent(
        fmt::format("ResourceClaim {}/{} does not exist any more", claim.space, claim.name));
  if (!object) co_return retry(object.error().text());
  if (object->uid() != claim.uid.value)
    co_return permanent(fmt::format("ResourceClaim {}/{} got replaced: it has UID {} now, not {}",
                                    claim.space, claim.name, object->uid(), claim.uid.value));
  const Json* status = find(object->json(), "status");
  if (!status || !find(*status, "allocation"))
    co_return retry(
        fmt::format("ResourceClaim {}/{} has no allocation: the scheduler has not placed it",
                    claim.space, claim.name));

  Attempt<std::vector<ConfigGroup>> groups = read_allocation(*status, Decoding::strict);
  if (Trouble* trouble = trouble_of(groups)) co_return std::move(*trouble);
  Begin wanted{claim, *status, std::get<std::vector<ConfigGroup>>(std::move(groups))};
  for (const ConfigGroup& group : wanted.groups) {
    if (!group.is_channel() && config_.mode == ImexMode::host_managed)
      co_return permanent(
          "daemon claims cannot be prepared in IMEX mode hostManaged: nvidia-imex is run by the "
          "administrator; use the ResourceClaimTemplate that the ComputeDomain names");
    if (!group.is_channel()) continue;
    Attempt<k8s::ObjectPtr> domain =
        co_await parts_.domains.require(group.domain().value, claim.space);
    if (Trouble* trouble = trouble_of(domain)) co_return std::move(*trouble);
  }
  call.wanted = std::move(wanted);
  co_return std::nullopt;
}

Async<Attempt<Begun>> Driver::begin_once(Call& call) {
  Attempt<Begun> outcome = Begun::started;
  Turns::Turn turn = co_await turns_.take(call.claim.uid);
  if (unprepared_since(call))
    co_return permanent("claim prepare was already aborted: the claim was unprepared meanwhile");
  Result<void> written = co_await parts_.checkpoint.update([&](dra::Checkpoint& checkpoint) {
    outcome = begin(checkpoint, *call.wanted, parts_.time.wall());
    return ok();
  });
  if (!written) co_return retry("cannot record the claim: " + written.error().text());
  co_return outcome;
}

Async<std::optional<Trouble>> Driver::closed(const Call& call) {
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(call.claim.uid);
  if (!entry || entry->state == dra::ClaimState::aborted)
    co_return permanent("claim prepare was already aborted: the claim was unprepared meanwhile");
  if (!facts().clique())
    co_return retry("this node's fabric clique is not known: " + facts().trouble());
  // A node without fabric has no channel to give and nothing to wait for.
  if (facts().clique()->empty()) co_return std::nullopt;
  for (const ConfigGroup& group : call.wanted->groups) {
    if (!group.is_channel()) continue;
    std::optional<Trouble> trouble = co_await parts_.gate.closed(group.domain());
    if (trouble) co_return trouble;
  }
  co_return std::nullopt;
}

Async<Attempt<dra::Prepared>> Driver::finish(const Call& call) {
  const ClaimUid uid = call.claim.uid;
  Turns::Turn turn = co_await turns_.take(uid);
  if (unprepared_since(call))
    co_return permanent("claim prepare was already aborted: the claim was unprepared meanwhile");
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(uid);
  // Another call for the same claim was faster.
  if (entry && entry->state == dra::ClaimState::completed) co_return entry->prepared();

  bool edits = with_edits();
  if (edits) {
    Result<cdi::Spec> spec = channel_spec(uid, call.wanted->groups, config_.roots,
                                          config_.mode == ImexMode::driver_managed);
    if (!spec) co_return retry(spec.error().text());
    if (!spec->devices.empty()) {
      Result<void> put = parts_.cdi.put(cdi::claim_file(uid), *spec);
      if (!put) co_return retry("cannot write the CDI file: " + put.error().text());
    }
  }
  std::optional<Trouble> trouble;
  Result<void> written = co_await parts_.checkpoint.update([&](dra::Checkpoint& checkpoint) {
    trouble = complete(checkpoint, call.claim, prepared_groups(uid, call.wanted->groups, edits));
    return ok();
  });
  if (!written) co_return retry("cannot record the claim: " + written.error().text());
  if (trouble) {
    Result<void> removed = parts_.cdi.remove(cdi::claim_file(uid));
    if (!removed) LOG_WARNING("Cannot remove a CDI file", {{"err", removed.error().text()}});
    co_return *std::move(trouble);
  }
  parts_.metrics.count_devices(parts_.checkpoint.current());
  co_return parts_.checkpoint.current().find(uid)->prepared();
}

// Prepared before: the same answer, and what it refers to is there (reports 16, 17).
Async<Attempt<dra::Prepared>> Driver::completed(dra::ClaimRef claim) {
  Turns::Turn turn = co_await turns_.take(claim.uid);
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(claim.uid);
  if (!entry || entry->state != dra::ClaimState::completed)
    co_return retry("the claim was unprepared meanwhile");
  Result<void> restored = restore_file(claim.uid, *entry);
  if (!restored) co_return retry("cannot restore the CDI file: " + restored.error().text());
  co_return entry->prepared();
}

Result<void> Driver::restore_file(const ClaimUid& uid, const dra::CheckpointClaim& entry) {
  bool has_file = std::ranges::any_of(entry.prepared(), [&](const dra::PreparedDevice& device) {
    return std::ranges::find(device.cdi_ids, cdi::claim_device_id(uid, device.device)) !=
           device.cdi_ids.end();
  });
  if (!has_file) return ok();
  Attempt<std::vector<ConfigGroup>> groups = read_allocation(entry.status, Decoding::lenient);
  // What an older release stored without its allocation cannot be made again.
  if (trouble_of(groups)) return ok();
  Result<cdi::Spec> wanted = channel_spec(uid, std::get<std::vector<ConfigGroup>>(groups),
                                          config_.roots, config_.mode == ImexMode::driver_managed);
  if (!wanted) return std::move(wanted).failure();
  if (wanted->devices.empty()) return ok();
  Result<cdi::Spec> there = parts_.cdi.get(cdi::claim_file(uid));
  if (there && *there == *wanted) return ok();
  LOG_INFO(0, "Restoring the CDI file of a prepared claim", {{"claim", uid.value}});
  return parts_.cdi.put(cdi::claim_file(uid), *wanted);
}

}  // namespace nvdra::roles::kubelet_plugin
