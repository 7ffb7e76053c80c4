// IMEX_CONFIG_OVERRIDES: the administrator's settings for the generated IMEX configuration
// (newer.md A15, reports 85). Parsed by controller and daemon alike.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nvdra::roles {

using ImexOverrides = std::vector<std::pair<std::string, std::string>>;

// "KEY=VALUE,KEY=VALUE,": empty items are skipped, blanks around key and value are dropped, the
// value may be empty and may hold '='. Refused, with the item named: no '=', an empty key, a line
// break, and the keys that the driver computes itself (IMEX_CMD_BIND_INTERFACE_IP,
// IMEX_NODE_CONFIG_FILE, SERVER_PORT, IMEX_CMD_PORT, IMEX_CMD_ENABLED, BIND_INTERFACE_IP,
// IMEX_CMD_UNIX_DOMAIN_PATH, DAEMONIZE). The last of several values for one key wins.
Result<ImexOverrides> parse_imex_overrides(std::string_view text);
// "KEY=VALUE,…", as parsed.
std::string render_imex_overrides(const ImexOverrides& overrides);

}  // namespace nvdra::roles
