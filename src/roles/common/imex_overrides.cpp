#include "roles/common/imex_overrides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::roles {
namespace {

constexpr std::array<std::string_view, 8> computed_keys{
    "BIND_INTERFACE_IP",     "DAEMONIZE",     "IMEX_CMD_BIND_INTERFACE_IP",
    "IMEX_CMD_ENABLED",      "IMEX_CMD_PORT", "IMEX_CMD_UNIX_DOMAIN_PATH",
    "IMEX_NODE_CONFIG_FILE", "SERVER_PORT"};

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Result<std::pair<std::string, std::string>> parse_item(std::string_view item) {
  std::size_t equals = item.find('=');
  if (equals == std::string_view::npos)
    return refuse(fmt::format(
        "IMEX configuration override \"{}\" (IMEX_CONFIG_OVERRIDES) has no '=': write KEY=VALUE",
        item));
  std::string_view key = trimmed(item.substr(0, equals));
  std::string_view value = trimmed(item.substr(equals + 1));
  if (key.empty())
    return refuse(
        fmt::format("IMEX configuration override \"{}\" (IMEX_CONFIG_OVERRIDES) has no key", item));
  if (item.find_first_of("\r\n") != std::string_view::npos)
    return refuse(fmt::format(
        "IMEX configuration override {} (IMEX_CONFIG_OVERRIDES) contains a line break", key));
  if (std::ranges::find(computed_keys, key) != computed_keys.end())
    return refuse(
        fmt::format("IMEX configuration override {} (IMEX_CONFIG_OVERRIDES) is refused: the driver "
                    "computes this "
                    "setting itself",
                    key));
  return std::pair{std::string(key), std::string(value)};
}

}  // namespace

Result<ImexOverrides> parse_imex_overrides(std::string_view text) {
  ImexOverrides overrides;
  while (!text.empty()) {
    std::size_t comma = text.find(',');
    std::string_view item = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (item.empty()) continue;
    Result<std::pair<std::string, std::string>> pair = parse_item(item);
    if (!pair) return std::move(pair).failure();
    auto same =
        std::ranges::find(overrides, pair->first, &std::pair<std::string, std::string>::first);
    if (same != overrides.end()) {
      same->second = pair->second;
    } else {
      overrides.push_back(*std::move(pair));
    }
  }
  return overrides;
}

std::string render_imex_overrides(const ImexOverrides& overrides) {
  std::string text;
  for (const auto& [key, value] : overrides) text.append(key).append("=").append(value).append(",");
  return text;
}

}  // namespace nvdra::roles
