// Reading a checkpoint of any layout.
#include "base/try.hpp"
#include "dra/checkpoint_text.hpp"
#include "dra/checksum.hpp"
#include "dra/go_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

namespace nvdra::dra {
namespace {

Failure corrupt(std::string_view why) {
  return fail(make_error_code(Errc::corrupt), why);
}

bool is(const RawMember& member, std::string_view key) {
  return member.key.substr(1, member.key.size() - 2) == key;
}

// "v3", "v4" …: the claims in a layout of a release newer than ours.
bool is_newer_layout(std::string_view key) {
  return key.size() > 1 && key[0] == 'v' && key != "v1" && key != "v2" &&
         std::ranges::all_of(key.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

// The object as its checksum sees it: with a checksum of 0 and without what `leave_out` names.
std::uint32_t checksum_without(const std::vector<RawMember>& members,
                               const std::function<bool(const RawMember&)>& leave_out) {
  Checksum sum;
  std::string_view separator = "{";
  for (const RawMember& member : members) {
    if (leave_out(member)) continue;
    sum.add(separator);
    sum.add(member.key);
    sum.add(":");
    sum.add(is(member, "checksum") ? "0" : member.value);
    separator = ",";
  }
  sum.add("}");
  return sum.value();
}

Result<void> verify(const std::vector<RawMember>& members, std::string_view where) {
  std::string_view stored = value_of(members, "checksum");
  std::uint64_t wanted = 0;
  auto [end, failed] = std::from_chars(stored.data(), stored.data() + stored.size(), wanted);
  if (stored.empty() || failed != std::errc{} || end != stored.data() + stored.size())
    return corrupt(fmt::format("no checksum in {}", where));
  std::uint32_t sum = checksum_without(members, [](const auto& m) { return is(m, "v2"); });
  if (sum == wanted) return ok();
  // A newer release may leave its own layout out, as v1's readers know nothing of v2.
  std::uint32_t other = checksum_without(
      members, [](const auto& m) { return is(m, "v2") || is_newer_layout(key_text(m.key)); });
  if (other == wanted) return ok();
  return corrupt(
      fmt::format("checksum {} of {} does not fit its content, which has {}", wanted, where, sum));
}

std::vector<std::string> texts_at(const Json& value, std::string_view key) {
  std::vector<std::string> texts;
  for (const Json& item : array_or_empty(value, key))
    if (const auto* text = item.if_string()) texts.emplace_back(*text);
  return texts;
}

std::string text_of(const Json& value, std::string_view path) {
  return std::string(text_or_empty(value, path));
}

PreparedDevice prepared_device(const Json& value) {
  if (get(value, "device_name"))
    return {texts_at(value, "request_names"), text_of(value, "pool_name"),
            text_of(value, "device_name"), texts_at(value, "cdi_device_ids")};
  return {texts_at(value, "Requests"), text_of(value, "PoolName"), text_of(value, "DeviceName"),
          texts_at(value, "CDIDeviceIDs")};
}

Result<std::vector<DeviceGroup>> device_groups(const Json& value) {
  std::vector<DeviceGroup> groups;
  for (const Json& item : array_or_empty(value, "")) {
    DeviceGroup group;
    group.type = text_of(item, "configState/Type");
    group.domain = DomainUid(text_of(item, "configState/ComputeDomain"));
    for (const Json& device : array_or_empty(item, "devices")) {
      const Json* channel = nvdra::find(device, "channel/device");
      const Json* daemon = nvdra::find(device, "daemon/device");
      if (!channel && !daemon) return refuse("a device is neither a channel nor a daemon");
      auto kind = channel ? CheckpointDevice::Kind::channel : CheckpointDevice::Kind::daemon;
      std::int64_t id = int_or(device, channel ? "channel/info/id" : "daemon/info/id", 0);
      group.devices.push_back({kind, id, prepared_device(channel ? *channel : *daemon)});
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// The fields that both layouts have.
Result<CheckpointClaim> claim_of(const Json& value) {
  CheckpointClaim claim;
  if (const Json* status = get(value, "status"); status && status->is_object())
    claim.status = *status;
  if (const Json* devices = get(value, "preparedDevices")) {
    TRY(claim.groups, device_groups(*devices));
  }
  return claim;
}

// `{"status":…,"preparedDevices":…}` of an entry whose bytes are kept.
std::string v1_copy(std::string_view v2) {
  Result<std::vector<RawMember>> members = members_of(v2);
  std::string out;
  for (const RawMember& member : *members) {
    if (!is(member, "status") && !is(member, "preparedDevices")) continue;
    out += out.empty() ? '{' : ',';
    out.append(member.key).append(":").append(member.value);
  }
  return out.empty() ? "{}" : out + '}';
}

// An entry of v2. What cannot be understood is kept, and stays a claim of unknown state.
Checkpoint::Entry v2_entry(std::string_view text) {
  Checkpoint::Entry entry;
  entry.v2.text = std::string(text);
  Result<Json> value = parse_json(text);
  if (!value || !value->is_object()) {
    entry.claim.state = ClaimState::unknown;
    entry.claim.state_text = value ? "not an object" : value.error().text();
    return entry;
  }
  Result<CheckpointClaim> claim = claim_of(*value);
  if (claim) entry.claim = *claim;
  entry.claim.name = text_of(*value, "name");
  entry.claim.space = text_of(*value, "namespace");
  entry.claim.aborted_at = text_of(*value, "abortedAt");
  std::string state = text_of(*value, "checkpointState");
  entry.claim.state = claim ? state_named(state) : ClaimState::unknown;
  if (entry.claim.state == ClaimState::unknown)
    entry.claim.state_text = claim ? state : claim.error().text();
  if (entry.claim.state == ClaimState::completed) entry.v1.text = v1_copy(text);
  return entry;
}

// An entry of v1, or, if it is an array, of the oldest layout.
Result<Checkpoint::Entry> v1_entry(std::string_view text) {
  TRY(Json value, parse_json(text));
  CheckpointClaim claim;
  if (value.is_array()) {
    TRY(claim.groups, device_groups(value));
  } else {
    TRY(claim, claim_of(value));
  }
  claim.state = ClaimState::completed;
  return make_entry(std::move(claim));
}

Result<std::vector<RawMember>> object_at(const std::vector<RawMember>& members,
                                         std::string_view key) {
  std::string_view text = value_of(members, key);
  if (text.empty() || text == "null") return std::vector<RawMember>{};
  Result<std::vector<RawMember>> inner = members_of(text);
  if (!inner) return corrupt(fmt::format("{}: {}", key, inner.error().text()));
  return inner;
}

Result<Checkpoint::Entries> entries_of(
    const std::vector<RawMember>& layout,
    const std::function<Result<Checkpoint::Entry>(std::string_view)>& entry_of) {
  TRY(std::vector<RawMember> claims, object_at(layout, "preparedClaims"));
  Checkpoint::Entries entries;
  for (const RawMember& claim : claims) {
    ClaimUid uid(key_text(claim.key));
    Result<Checkpoint::Entry> entry = entry_of(claim.value);
    if (!entry) return corrupt(fmt::format("claim {}: {}", uid.value, entry.error().text()));
    set_key(*entry, claim.key);
    entries[uid] = std::make_shared<const Checkpoint::Entry>(*std::move(entry));
  }
  return entries;
}

std::string unknown_members(const std::vector<RawMember>& members,
                            const std::function<bool(const RawMember&)>& known) {
  std::string out;
  for (const RawMember& member : members) {
    if (known(member)) continue;
    out.append(",").append(member.key).append(":").append(member.value);
  }
  return out;
}

}  // namespace

Result<Checkpoint> CheckpointText::parse(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return corrupt(fmt::format("the file has {} bytes and no content", text.size()));
  Result<std::vector<RawMember>> top = members_of(text);
  if (!top) return corrupt(top.error().text());
  TRY_VOID(verify(*top, "the file"));

  Checkpoint checkpoint;
  checkpoint.unknown_ = unknown_members(*top, [](const RawMember& m) {
    return is(m, "checksum") || is(m, "v1") || is(m, "v2") || is_newer_layout(key_text(m.key));
  });
  std::string_view v2_text = value_of(*top, "v2");
  if (v2_text.empty() || v2_text == "null") {
    TRY(std::vector<RawMember> v1, object_at(*top, "v1"));
    TRY(checkpoint.entries_, entries_of(v1, v1_entry));
    return checkpoint;
  }
  TRY(std::vector<RawMember> v2, object_at(*top, "v2"));
  TRY_VOID(verify(v2, "v2"));
  TRY(checkpoint.entries_, entries_of(v2, v2_entry));
  Result<Json> boot_id = parse_json(value_of(v2, "nodeBootID"));
  if (boot_id && boot_id->is_string()) checkpoint.boot_id_ = std::string(boot_id->get_string());
  checkpoint.unknown_v2_ = unknown_members(v2, [](const RawMember& m) {
    return is(m, "checksum") || is(m, "preparedClaims") || is(m, "nodeBootID");
  });
  return checkpoint;
}

}  // namespace nvdra::dra
