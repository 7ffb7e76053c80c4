#include "roles/kubelet_plugin/allocation.hpp"

#include "imex/channel.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {
namespace {

using DeviceKind = dra::CheckpointDevice::Kind;

// A config as it stands in the allocation, lowest precedence first.
struct Candidate {
  std::vector<std::string> requests;
  OpaqueConfig config;
};

std::string_view kind_name(const OpaqueConfig& config) {
  return std::holds_alternative<ChannelConfig>(config) ? channel_config_kind : daemon_config_kind;
}

bool fits(const OpaqueConfig& config, DeviceKind kind) {
  return std::holds_alternative<ChannelConfig>(config) == (kind == DeviceKind::channel);
}

bool names(const std::vector<std::string>& requests, std::string_view request) {
  std::string_view parent = request.substr(0, request.find('/'));
  return std::ranges::any_of(
      requests, [&](const std::string& name) { return name == request || name == parent; });
}

Attempt<Candidate> read_candidate(const Json& entry, Decoding decoding) {
  const Json* opaque = get(entry, "opaque");
  const Json* parameters = opaque ? get(*opaque, "parameters") : nullptr;
  if (!parameters)
    return permanent(
        "a device config of the claim has no opaque parameters: give it some, or remove it");
  Result<OpaqueConfig> config =
      decoding == Decoding::strict ? decode_strict(*parameters) : decode_lenient(*parameters);
  if (!config) return permanent("error decoding config parameters: " + config.error().text());
  Candidate candidate{{}, *std::move(config)};
  for (const Json& request : array_or_empty(entry, "requests"))
    if (request.is_string()) candidate.requests.emplace_back(request.get_string());
  return candidate;
}

// Class configs first, then claim configs: the later, the stronger.
Attempt<std::vector<Candidate>> read_candidates(const Json& status, Decoding decoding) {
  std::vector<Candidate> candidates;
  const JsonArray& entries = array_or_empty(status, "allocation/devices/config");
  for (const Json& entry : entries) {
    std::string_view source = text_or_empty(entry, "source");
    if (source != "FromClass" && source != "FromClaim")
      return permanent(
          fmt::format("a device config of the claim has the unknown source \"{}\"", source));
  }
  for (std::string_view wanted : {"FromClass", "FromClaim"}) {
    for (const Json& entry : entries) {
      if (text_or_empty(entry, "source") != wanted) continue;
      const Json* opaque = get(entry, "opaque");
      if (opaque && text_or_empty(*opaque, "driver") != driver_name) continue;
      Attempt<Candidate> candidate = read_candidate(entry, decoding);
      if (Trouble* trouble = trouble_of(candidate)) return std::move(*trouble);
      candidates.push_back(std::get<Candidate>(std::move(candidate)));
    }
  }
  return candidates;
}

// The index of the strongest config for one allocated device.
Attempt<std::size_t> choose(const std::vector<Candidate>& candidates,
                            const dra::AllocatedDevice& result, DeviceKind kind) {
  for (std::size_t i = candidates.size(); i-- > 0;) {
    const Candidate& candidate = candidates[i];
    if (names(candidate.requests, result.request)) {
      if (!fits(candidate.config, kind))
        return permanent(fmt::format("cannot apply {} to request: {}", kind_name(candidate.config),
                                     result.request));
      return i;
    }
    if (candidate.requests.empty() && fits(candidate.config, kind)) return i;
  }
  return permanent(
      fmt::format("no device config with a domainID applies to request {}: use the "
                  "ResourceClaimTemplate that the "
                  "ComputeDomain names",
                  result.request));
}

std::optional<Trouble> check_group(const ConfigGroup& group) {
  Result<void> legal = validate_domain_id(group.domain().value);
  if (!legal) return permanent(legal.error().text());
  if (group.devices.size() != 1)
    return permanent(fmt::format("{} applies to {} devices, expected exactly one",
                                 kind_name(group.config), group.devices.size()));
  return std::nullopt;
}

}  // namespace

std::optional<DeviceName> parse_device_name(std::string_view name) {
  if (name == "daemon-0") return DeviceName{DeviceKind::daemon, 0};
  std::optional<unsigned> number = imex::channel_number(name);
  if (!number) return std::nullopt;
  return DeviceName{DeviceKind::channel, *number};
}

const DomainUid& ConfigGroup::domain() const {
  return std::visit([](const auto& each) -> const DomainUid& { return each.domain; }, config);
}

Attempt<std::vector<ConfigGroup>> read_allocation(const Json& status, Decoding decoding) {
  Attempt<std::vector<Candidate>> read = read_candidates(status, decoding);
  if (Trouble* trouble = trouble_of(read)) return std::move(*trouble);
  const auto& candidates = std::get<std::vector<Candidate>>(read);

  std::vector<std::vector<dra::AllocatedDevice>> devices(candidates.size());
  for (const dra::AllocatedDevice& result : dra::allocated_devices(status)) {
    if (result.driver != driver_name) continue;
    std::optional<DeviceName> name = parse_device_name(result.device);
    if (!name)
      return permanent(
          fmt::format("allocated device {} of pool {} is not one of this driver: expected "
                      "channel-0 to channel-{} or daemon-0",
                      result.device, result.pool, imex::channel_count - 1));
    Attempt<std::size_t> chosen = choose(candidates, result, name->kind);
    if (Trouble* trouble = trouble_of(chosen)) return std::move(*trouble);
    devices[std::get<std::size_t>(chosen)].push_back(result);
  }

  std::vector<ConfigGroup> groups;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (devices[i].empty()) continue;
    groups.push_back({candidates[i].config, std::move(devices[i])});
    std::optional<Trouble> trouble = check_group(groups.back());
    if (trouble && decoding == Decoding::strict) return *std::move(trouble);
  }
  return groups;
}

DomainUid stored_domain(const Json& status) {
  Attempt<std::vector<ConfigGroup>> read = read_allocation(status, Decoding::lenient);
  if (trouble_of(read)) return {};
  for (const ConfigGroup& group : std::get<std::vector<ConfigGroup>>(read))
    if (validate_domain_id(group.domain().value)) return group.domain();
  return {};
}

}  // namespace nvdra::roles::kubelet_plugin
