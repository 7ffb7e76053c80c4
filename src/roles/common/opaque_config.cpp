#include "roles/common/opaque_config.hpp"

#include "base/try.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace nvdra::roles {
namespace {

constexpr std::array channel_fields{"apiVersion", "kind", "domainID", "allocationMode"};
constexpr std::array daemon_fields{"apiVersion", "kind", "domainID"};
// Kinds of the same API group that are no claim configs of this driver.
constexpr std::array other_kinds{"GpuConfig", "MigDeviceConfig", "VfioDeviceConfig",
                                 "ComputeDomain", "ComputeDomainClique"};

Result<std::string> kind_of(const Json& parameters) {
  if (!parameters.is_object()) return refuse("opaque parameters are not a JSON object");
  std::string_view version = text_or_empty(parameters, "apiVersion");
  std::string_view kind = text_or_empty(parameters, "kind");
  if (kind.empty()) return refuse("opaque parameters: field kind is missing");
  if (version.empty()) return refuse("opaque parameters: field apiVersion is missing");
  if (version != nvidia_api_version())
    return refuse(fmt::format("opaque parameters: unknown apiVersion \"{}\", expected \"{}\"",
                              version, nvidia_api_version()));
  if (kind == channel_config_kind || kind == daemon_config_kind) return std::string(kind);
  if (std::ranges::find(other_kinds, kind) != other_kinds.end())
    return refuse(fmt::format("opaque parameters: kind {} cannot be applied by driver {}", kind,
                              driver_name));
  return refuse(fmt::format("opaque parameters: unknown kind \"{}\", expected {} or {}", kind,
                            channel_config_kind, daemon_config_kind));
}

Result<std::string> optional_text(const Json& parameters, std::string_view field) {
  if (!get(parameters, field)) return std::string{};
  return text_at(parameters, field);
}

Result<OpaqueConfig> read_fields(const Json& parameters, const std::string& kind) {
  TRY(std::string domain, optional_text(parameters, "domainID"));
  if (kind == daemon_config_kind) return OpaqueConfig{DaemonConfig{DomainUid{std::move(domain)}}};
  TRY(std::string mode, optional_text(parameters, "allocationMode"));
  return OpaqueConfig{ChannelConfig{DomainUid{std::move(domain)}, std::move(mode)}};
}

std::string strict_problems(const Json& parameters, std::string_view text,
                            std::span<const char* const> known) {
  std::string problems;
  auto add = [&](std::string_view what, std::string_view field) {
    problems += fmt::format("{}{} \"{}\"", problems.empty() ? "" : ", ", what, field);
  };
  for (const auto& [key, value] : parameters.get_object())
    if (std::ranges::find(known, std::string_view(key)) == known.end()) add("unknown field", key);
  if (!text.empty())
    for (const std::string& path : duplicate_keys(text)) add("duplicate field", path);
  return problems;
}

}  // namespace

Result<OpaqueConfig> decode_strict(const Json& parameters, std::string_view text) {
  TRY(std::string kind, kind_of(parameters));
  std::span<const char* const> known = channel_fields;
  if (kind == daemon_config_kind) known = daemon_fields;
  std::string problems = strict_problems(parameters, text, known);
  if (!problems.empty()) return refuse("strict decoding error: " + problems);
  return read_fields(parameters, kind);
}

Result<OpaqueConfig> decode_lenient(const Json& parameters) {
  TRY(std::string kind, kind_of(parameters));
  return read_fields(parameters, kind);
}

Result<void> validate_domain_id(std::string_view id) {
  if (id.empty()) return refuse("domainID cannot be empty");
  std::string reasons;
  if (id == "." || id == "..") reasons = fmt::format("may not be '{}'", id);
  if (id.find('/') != std::string_view::npos) reasons += "may not contain '/'";
  if (id.find('%') != std::string_view::npos)
    reasons += std::string(reasons.empty() ? "" : ", ") + "may not contain '%'";
  if (!reasons.empty())
    return refuse(
        fmt::format("domainID \"{}\" is not a valid single path component: {}", id, reasons));
  if (!is_label_value(id))
    return refuse(fmt::format(
        "domainID must be a valid label value (at most 63 letters, digits, '-', '_' or '.', "
        "alphanumeric at both ends), not \"{}\"",
        id.substr(0, 80)));
  return ok();
}

}  // namespace nvdra::roles
