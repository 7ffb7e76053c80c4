// The configuration file of nvidia-imex: `# comment` lines, then KEY=VALUE without quotes; a value
// may be empty and may hold '='. Pure.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

// The keys that the simulated daemon acts upon; all other documented ones are accepted.
struct ImexConfig {
  int log_level = 4;
  std::string log_file = "/var/log/nvidia-imex.log";  // "" or not openable: stderr
  bool log_append = true;
  bool daemonize = true;
  std::string bind_address = {};  // "" = the own line of the nodes file
  std::uint16_t server_port = 50000;
  std::string nodes_file = "/etc/nvidia-imex/nodes_config.cfg";
  std::string quorum = "RECOVERY";
  bool encryption = false;
  bool command_enabled = false;
  std::string command_address = {};  // "" = all
  std::optional<std::uint16_t> command_port = {};
  std::string command_socket = {};
  int grace_seconds = -1;  // until a lost peer is cleaned up; -1 = never

  std::vector<std::string> unknown_keys = {};
};

inline constexpr std::string_view imex_config_path = "/etc/nvidia-imex/config.cfg";

// An error is one sentence with the key, its value and what is accepted.
Result<ImexConfig> parse_imex_config(std::string_view text);
Result<ImexConfig> read_imex_config(const std::string& path);

}  // namespace nvdra::sandbox
