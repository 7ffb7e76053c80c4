#include "roles/kubelet_plugin/ledger.hpp"

#include "base/time.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

namespace nvdra::roles::kubelet_plugin {
namespace {

using std::chrono::system_clock;

bool is_expired(const dra::CheckpointClaim& entry, system_clock::time_point now) {
  std::tm parts{};
  if (!::strptime(entry.aborted_at.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts)) return true;
  const std::chrono::seconds noted(::timegm(&parts));
  const auto age = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()) - noted;
  // From the future: the clock has been set back, and nobody knows how old the entry is.
  return age >= aborted_lifetime || age <= -aborted_lifetime;
}

// The names of our devices that a claim holds exclusively.
std::set<std::string> exclusive_devices(const Json& status) {
  std::set<std::string> held;
  for (const dra::AllocatedDevice& each : dra::allocated_devices(status))
    if (each.driver == driver_name && !each.admin_access) held.insert(each.device);
  return held;
}

std::optional<Trouble> overlap(const dra::Checkpoint& checkpoint, const Begin& wanted) {
  std::set<std::string> asked = exclusive_devices(wanted.status);
  for (const auto& [uid, entry] : checkpoint.entries()) {
    if (uid == wanted.claim.uid || entry->claim.state != dra::ClaimState::completed) continue;
    for (const std::string& device : exclusive_devices(entry->claim.status))
      if (asked.contains(device))
        return retry(
            fmt::format("requested device {} is already allocated to different claim {} ({}/{}): "
                        "it becomes free "
                        "when that claim's pod has ended",
                        device, uid.value, entry->claim.space, entry->claim.name));
  }
  return std::nullopt;
}

std::optional<Trouble> channel_taken(const dra::Checkpoint& checkpoint, const Begin& wanted) {
  for (const ConfigGroup& group : wanted.groups) {
    for (const dra::AllocatedDevice& device : group.devices) {
      std::optional<DeviceName> name = parse_device_name(device.device);
      bool exclusive =
          name && name->kind == dra::CheckpointDevice::Kind::channel && !device.admin_access;
      if (!exclusive) continue;
      ClaimUid holder = channel_holder(checkpoint, name->id, wanted.claim.uid);
      if (!holder.empty())
        return retry(
            fmt::format("channel {} already allocated by claim {}: one channel claim at a time "
                        "can be prepared on a node",
                        name->id, holder.value));
    }
  }
  return std::nullopt;
}

}  // namespace

Attempt<Begun> begin(dra::Checkpoint& checkpoint, const Begin& wanted,
                     system_clock::time_point now) {
  const dra::CheckpointClaim* entry = checkpoint.find(wanted.claim.uid);
  if (entry && entry->state == dra::ClaimState::completed) return Begun::completed;
  bool same = entry && dra::same_status(entry->status, wanted.status);
  if (entry && entry->state == dra::ClaimState::aborted && same && !is_expired(*entry, now))
    return permanent(fmt::format(
        "claim prepare was already aborted: claim {} was unprepared and has not changed since",
        wanted.claim.text()));
  if (std::optional<Trouble> trouble = overlap(checkpoint, wanted)) return *std::move(trouble);
  if (std::optional<Trouble> trouble = channel_taken(checkpoint, wanted))
    return *std::move(trouble);
  if (entry && entry->state == dra::ClaimState::started && same) return Begun::started;

  dra::CheckpointClaim intent;
  intent.state = dra::ClaimState::started;
  intent.status = wanted.status;
  intent.name = wanted.claim.name;
  intent.space = wanted.claim.space;
  checkpoint.put(wanted.claim.uid, std::move(intent));
  return Begun::started;
}

std::optional<Trouble> complete(dra::Checkpoint& checkpoint, const dra::ClaimRef& claim,
                                std::vector<dra::DeviceGroup> groups) {
  const dra::CheckpointClaim* entry = checkpoint.find(claim.uid);
  if (!entry || entry->state != dra::ClaimState::started)
    return permanent(fmt::format(
        "claim prepare was already aborted: claim {} was unprepared meanwhile", claim.text()));
  dra::CheckpointClaim done = *entry;
  done.state = dra::ClaimState::completed;
  done.groups = std::move(groups);
  checkpoint.put(claim.uid, std::move(done));
  return std::nullopt;
}

Undo undo_of(const dra::CheckpointClaim* entry) {
  if (!entry) return Undo::nothing;
  switch (entry->state) {
    case dra::ClaimState::aborted: return Undo::nothing;
    case dra::ClaimState::started: return Undo::started;
    case dra::ClaimState::completed: return Undo::completed;
    // Of another release: what it left is taken back as if it were complete (reports 10, 17).
    case dra::ClaimState::unknown: return Undo::completed;
  }
  __builtin_unreachable();
}

std::vector<ClaimUid> expired(const dra::Checkpoint& checkpoint, system_clock::time_point now) {
  std::vector<ClaimUid> uids;
  for (const auto& [uid, entry] : checkpoint.entries())
    if (entry->claim.state == dra::ClaimState::aborted && is_expired(entry->claim, now))
      uids.push_back(uid);
  return uids;
}

ClaimUid channel_holder(const dra::Checkpoint& checkpoint, std::int64_t number,
                        const ClaimUid& but) {
  for (const auto& [uid, entry] : checkpoint.entries()) {
    if (uid == but || entry->claim.state != dra::ClaimState::completed) continue;
    for (const dra::DeviceGroup& group : entry->claim.groups)
      for (const dra::CheckpointDevice& device : group.devices)
        if (device.kind == dra::CheckpointDevice::Kind::channel && device.id == number) return uid;
  }
  return {};
}

DomainUid channel_domain(const dra::CheckpointClaim& entry) {
  for (const dra::DeviceGroup& group : entry.groups)
    if (group.type == "channel" && validate_domain_id(group.domain.value)) return group.domain;
  Attempt<std::vector<ConfigGroup>> read = read_allocation(entry.status, Decoding::lenient);
  if (trouble_of(read)) return {};
  for (const ConfigGroup& group : std::get<std::vector<ConfigGroup>>(read))
    if (group.is_channel() && validate_domain_id(group.domain().value)) return group.domain();
  return {};
}

bool needs_node(const dra::Checkpoint& checkpoint, const DomainUid& domain, const ClaimUid& but) {
  return std::ranges::any_of(checkpoint.entries(), [&](const auto& each) {
    const auto& [uid, entry] = each;
    bool counts = uid != but && entry->claim.state != dra::ClaimState::aborted;
    return counts && channel_domain(entry->claim) == domain;
  });
}

std::map<ClaimUid, DomainUid> channels_in_use(const dra::Checkpoint& checkpoint) {
  std::map<ClaimUid, DomainUid> found;
  for (const auto& [uid, entry] : checkpoint.entries()) {
    if (entry->claim.state != dra::ClaimState::completed) continue;
    DomainUid domain = channel_domain(entry->claim);
    if (!domain.empty()) found.emplace(uid, std::move(domain));
  }
  return found;
}

}  // namespace nvdra::roles::kubelet_plugin
