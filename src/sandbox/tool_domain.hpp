// What `nvidia-imex-ctl -N` shows: the members of a domain, their states and connections. Pure.
#pragma once

#include "base/json.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

// The table's letters: I invalid, N never connected, R recovering, D disconnected,
// A authenticating, C connected; V and M are shown as !V! and !M!.
struct Member {
  std::string host;       // as in the nodes file
  std::string host_name;  // of its machine; "" when unknown
  std::string state;      // "READY", "UNAVAILABLE", …
  std::string version;    // "" when absent
  std::string row;        // a letter for each member
};

struct DomainView {
  std::vector<Member> members;
  std::size_t asked = npos;  // whose view this is
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

// A domain in which nobody answers.
DomainView absent_domain(const std::vector<std::string>& nodes);

// UP: all are READY and connected; DEGRADED: some are READY; DOWN: none is.
std::string_view domain_state(const DomainView& view);

// `version` is the tool's own and decides about the layout; `now` is "5/4/2026 06:08:10.580".
std::string domain_table(const DomainView& view, std::string_view version, std::string_view now);
std::string domain_json(const DomainView& view, bool host_names, std::string_view now);

// Between the daemon and nvidia-imex-ctl.
Json to_json(const DomainView& view);
Result<DomainView> domain_from(const Json& json);

}  // namespace nvdra::sandbox
