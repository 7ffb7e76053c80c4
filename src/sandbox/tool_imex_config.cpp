#include "sandbox/tool_imex_config.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace nvdra::sandbox {
namespace {

constexpr std::size_t longest_path = 256;

constexpr std::string_view ignored[] = {
    "STATS_FILE_NAME",
    "LOG_FILE_MAX_SIZE",
    "LOG_MAX_ROTATE_COUNT",
    "LOG_USE_SYSLOG",
    "NETWORK_INTERFACE",
    "IMEX_CONN_WAIT_TIMEOUT",
    "IMEX_AUTH_SOURCE",
    "IMEX_SERVER_KEY",
    "IMEX_SERVER_CERT",
    "IMEX_SERVER_CERT_AUTH",
    "IMEX_CLIENT_KEY",
    "IMEX_CLIENT_CERT",
    "IMEX_CLIENT_CERT_AUTH",
    "IMEX_SECURITY_TARGET_OVERRIDE",
    "IMEX_GSS_SERVICE_NAME",
    "IMEX_GSS_TIMEOUT_SEC",
    "IMEX_GSS_RETRY_INTERVAL_SEC",
    "IMEX_GSS_SEC_CONTEXT_LIFETIME_SEC",
    "IMEX_GSS_SHUTDOWN_ON_FAILURE",
};

bool take_flag(std::string_view value, bool& into) {
  into = value == "1";
  return value == "0" || value == "1";
}

template <class Number>
bool take_number(std::string_view value, Number lowest, Number highest, Number& into) {
  const auto number = imex::parse_number<Number>(value);
  if (!number || *number < lowest || *number > highest) return false;
  into = *number;
  return true;
}

bool take_path(std::string_view value, std::string& into) {
  into = std::string(value);
  return value.size() <= longest_path;
}

bool take_word(std::string_view value, std::initializer_list<std::string_view> words,
               std::string& into) {
  into = std::string(value);
  return std::ranges::find(words, value) != words.end();
}

struct Key {
  std::string_view name;
  std::string_view accepted;
  std::function<bool(ImexConfig&, std::string_view)> take;
};

const std::vector<Key>& keys() {
  using C = ImexConfig;
  using V = std::string_view;
  constexpr std::uint16_t last_port = 65535;
  static const std::vector<Key> table = {
      {"LOG_LEVEL", "0 to 4", [](C& c, V v) { return take_number(v, 0, 4, c.log_level); }},
      {"LOG_FILE_NAME", "at most 256 characters",
       [](C& c, V v) { return take_path(v, c.log_file); }},
      {"LOG_APPEND_TO_LOG", "0 or 1", [](C& c, V v) { return take_flag(v, c.log_append); }},
      {"DAEMONIZE", "0 or 1", [](C& c, V v) { return take_flag(v, c.daemonize); }},
      {"BIND_INTERFACE_IP", "an address", [](C& c, V v) { return take_path(v, c.bind_address); }},
      {"SERVER_PORT", "0 to 65535",
       [](C& c, V v) { return take_number<std::uint16_t>(v, 0, last_port, c.server_port); }},
      {"IMEX_NODE_CONFIG_FILE", "at most 256 characters",
       [](C& c, V v) { return take_path(v, c.nodes_file); }},
      {"IMEX_WAIT_FOR_QUORUM", "RECOVERY or NONE",
       [](C& c, V v) { return take_word(v, {"RECOVERY", "NONE", "FULL"}, c.quorum); }},
      {"IMEX_ENABLE_AUTH_ENCRYPTION", "0 or 1",
       [](C& c, V v) { return take_flag(v, c.encryption); }},
      {"IMEX_CMD_ENABLED", "0 or 1", [](C& c, V v) { return take_flag(v, c.command_enabled); }},
      {"IMEX_CMD_BIND_INTERFACE_IP", "an address",
       [](C& c, V v) { return take_path(v, c.command_address); }},
      {"IMEX_CMD_PORT", "0 to 65535",
       [](C& c, V v) {
         if (v.empty()) return true;
         return take_number<std::uint16_t>(v, 0, last_port, c.command_port.emplace());
       }},
      {"IMEX_CMD_UNIX_DOMAIN_PATH", "at most 107 characters",
       [](C& c, V v) { return take_path(v, c.command_socket) && v.size() <= 107; }},
      {"IMEX_NODE_DISCONNECTED_GRACE_TIME", "-1 or seconds",
       [](C& c, V v) { return take_number(v, -1, 1 << 30, c.grace_seconds); }},
  };
  return table;
}

Result<void> take_line(std::string_view line, ImexConfig& config, std::string& mode) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos)
    return refuse(fmt::format("\"{}\" is neither a comment nor KEY=VALUE", line));
  const std::string_view name = imex::trim(line.substr(0, equals));
  const std::string_view value = imex::trim(line.substr(equals + 1));
  if (name == "IMEX_AUTH_ENCRYPTION_MODE") {
    mode = std::string(value);
    return ok();
  }
  const auto key = std::ranges::find(keys(), name, &Key::name);
  if (key == keys().end()) {
    if (std::ranges::find(ignored, name) == std::end(ignored))
      config.unknown_keys.emplace_back(name);
    return ok();
  }
  if (value.empty() && !key->accepted.starts_with("a")) return ok();  // as if it were not there
  if (!key->take(config, value))
    return refuse(fmt::format("Invalid value {} for {}: use {}", value, name, key->accepted));
  return ok();
}

}  // namespace

Result<ImexConfig> parse_imex_config(std::string_view text) {
  ImexConfig config;
  std::string mode = "SSL_TLS";
  while (const auto line = imex::next_line(text)) {
    const std::string_view content = imex::trim(*line);
    if (content.empty() || content.starts_with('#')) continue;
    TRY_VOID(take_line(content, config, mode));
  }
  if (config.encryption && mode != "SSL_TLS" && mode != "GSS_AUTH_ENCRYPT" &&
      mode != "GSS_AUTH_ONLY")
    return refuse(
        fmt::format("Invalid value {} for IMEX_AUTH_ENCRYPTION_MODE: use SSL_TLS, "
                    "GSS_AUTH_ENCRYPT or GSS_AUTH_ONLY",
                    mode));
  return config;
}

Result<ImexConfig> read_imex_config(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return std::move(text).failure().during("Failed to read configuration file " + path);
  Result<ImexConfig> config = parse_imex_config(*text);
  if (!config) return std::move(config).failure().during(path);
  return config;
}

}  // namespace nvdra::sandbox
