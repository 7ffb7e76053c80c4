#include "base/log.hpp"
#include "cdi/names.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/driver.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {

Driver::Driver(DriverParts parts, DriverConfig config)
    : parts_(parts),
      config_(std::move(config)),
      turns_(parts.executor),
      all_channels_(config_.roots) {}

Async<Result<dra::Prepared>> Driver::prepare(dra::ClaimRef claim, dra::Deadline deadline) {
  Metrics::Running running = parts_.metrics.begin(Metrics::Operation::prepare);
  leaving_.erase(claim.uid);
  Result<dra::Prepared> prepared = co_await hold(claim, deadline);
  if (!prepared) {
    parts_.metrics.prepare_failed();
    co_return std::move(prepared).failure();
  }
  running.succeeded();
  LOG_INFO(1, "Prepared claim", {{"claim", claim.text()}, {"devices", prepared->size()}});
  co_return prepared;
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
  call.at_gate = trouble.has_value() && facts().clique() && !call.gate_domain.empty();
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
    std::optional<Trouble> trouble = co_await check_group(call, group);
    if (trouble) co_return trouble;
    if (group.is_channel()) call.gate_domain = group.domain();
  }
  call.wanted = std::move(wanted);
  co_return std::nullopt;
}

// Its mode, its namespace, and that its ComputeDomain exists.
Async<std::optional<Trouble>> Driver::check_group(Call& call, const ConfigGroup& group) {
  const std::string& space = call.claim.space;
  if (!group.is_channel() && !driver_managed())
    co_return permanent(
        "daemon claims cannot be prepared in IMEX mode hostManaged: nvidia-imex is run by the "
        "administrator; use the ResourceClaimTemplate that the ComputeDomain names");
  bool driver_space = std::ranges::find(config_.namespaces, space) != config_.namespaces.end();
  if (!group.is_channel() && !driver_space)
    co_return permanent(
        fmt::format("daemon claims of namespace \"{}\" are not prepared: only the driver's own "
                    "DaemonSets use device class {}; workloads use the ResourceClaimTemplate that "
                    "the ComputeDomain names",
                    space, daemon_class));
  Attempt<k8s::ObjectPtr> domain =
      group.is_channel() ? co_await parts_.domains.require(group.domain().value, space)
                         : co_await parts_.domains.require_anywhere(group.domain().value);
  if (Trouble* trouble = trouble_of(domain)) co_return std::move(*trouble);
  const k8s::Object& found = *std::get<k8s::ObjectPtr>(domain);
  call.domains[group.domain()] = {std::string(found.space()), std::string(found.name())};
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

Async<std::optional<Trouble>> Driver::closed(Call& call) {
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(call.claim.uid);
  if (!entry || entry->state == dra::ClaimState::aborted)
    co_return permanent("claim prepare was already aborted: the claim was unprepared meanwhile");
  if (!facts().clique())
    co_return retry("this node's fabric clique is not known: " + facts().trouble());
  if (driver_managed() && !facts().refusal().empty()) co_return retry(facts().refusal());
  // A node without fabric has no channel to give; with an administrator's IMEX service there is
  // nothing to wait for either.
  if (facts().clique()->empty() && !driver_managed()) co_return std::nullopt;
  for (const ConfigGroup& group : call.wanted->groups) {
    if (!group.is_channel()) continue;
    std::optional<Trouble> trouble = co_await hold_node(call, group.domain());
    if (trouble) co_return trouble;
    trouble = co_await parts_.gate.closed(group.domain());
    if (trouble) co_return trouble;
  }
  co_return std::nullopt;
}

// driverManaged: the node works for the domain from here on, as far as it is free.
Async<std::optional<Trouble>> Driver::hold_node(Call& call, DomainUid domain) {
  if (!parts_.label) co_return std::nullopt;
  k8s::ObjectPtr known = parts_.domains.cached(domain.value);
  // The claim has been held for longer than its domain has lived.
  if (!known && call.labelled) {
    Attempt<k8s::ObjectPtr> there = co_await parts_.domains.require(domain.value, call.claim.space);
    if (Trouble* trouble = trouble_of(there)) co_return std::move(*trouble);
  }
  if (known && known->deleting())
    co_return permanent(
        fmt::format("ComputeDomain {} is being deleted: delete the pod as well, or create it anew "
                    "with a new ComputeDomain",
                    known->key().text()));
  Result<NodeLabel::Put> put = co_await parts_.label->put(domain);
  if (!put) co_return retry("cannot put the node label: " + put.error().text());
  if (!put->holder.empty())
    co_return retry(fmt::format(
        "node {} works for ComputeDomain {} (UID {}), and for one domain at a time: it becomes "
        "free when that domain's pods on this node have ended",
        config_.node.value, parts_.domains.text_of(put->holder), put->holder.value));
  call.labelled = true;
  // The daemon comes only now.
  if (put->changed)
    co_return retry(fmt::format("waiting for the IMEX daemon of ComputeDomain {} on node {}",
                                parts_.domains.text_of(domain), config_.node.value));
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

  bool fabric = with_fabric();
  if (Result<void> made = make_daemons_ready(call.wanted->groups); !made)
    co_return retry(made.error().text());
  Result<std::optional<cdi::Spec>> spec = wanted_spec(uid, call.wanted->groups, call.domains);
  if (!spec) co_return retry(spec.error().text());
  if (*spec) {
    Result<void> put = parts_.cdi.put(cdi::claim_file(uid), **spec);
    if (!put) co_return retry("cannot write the CDI file: " + put.error().text());
  }
  std::optional<Trouble> trouble;
  Result<void> written = co_await parts_.checkpoint.update([&](dra::Checkpoint& checkpoint) {
    trouble = complete(checkpoint, call.claim, prepared_groups(uid, call.wanted->groups, fabric));
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

}  // namespace nvdra::roles::kubelet_plugin
