// The opaque device configs of claims: ComputeDomainChannelConfig and ComputeDomainDaemonConfig
// (cluster-side.md 3.3, node-side.md 6.7, newer.md A1).
#pragma once

#include "base/ids.hpp"
#include "base/json.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace nvdra::roles {

struct ChannelConfig {
  DomainUid domain;
  std::string allocation_mode;  // "" when absent; only exactly "All" has an effect
  bool all() const { return allocation_mode == "All"; }
};

struct DaemonConfig {
  DomainUid domain;
};

using OpaqueConfig = std::variant<ChannelConfig, DaemonConfig>;

// Strict: for what users hand in. Unknown and duplicate fields are collected into one error that
// begins with `strict decoding error: ` and has items `unknown field "x"`, `duplicate field "x"`,
// joined by ", " [KEEP]. apiVersion and kind must be present and known; field names are case
// sensitive; a field of another type is an error that names it. `text` may be empty when only the
// parsed value is at hand: duplicates cannot be seen then.
Result<OpaqueConfig> decode_strict(const Json& parameters, std::string_view text = {});
// Lenient: for what we stored ourselves. Unknown fields are ignored.
Result<OpaqueConfig> decode_lenient(const Json& parameters);

// The rules of newer.md A1, in order: not empty; one path segment; a legal label value. Three
// distinct sentences.
Result<void> validate_domain_id(std::string_view id);

}  // namespace nvdra::roles
