#include "sandbox/tool_imex_config.hpp"

#include "catch.hpp"
#include "sandbox/tool_imex_daemon.hpp"
#include "sandbox/tool_members.hpp"

namespace nvdra::sandbox {
namespace {

TEST_CASE("the configuration file is keys and values, and comments never count",
          "[sandbox][tool]") {
  const auto config = parse_imex_config(
      "# IMEX_CMD_ENABLED=1\n"
      "LOG_LEVEL = 2\n"
      "LOG_FILE_NAME=\n"
      "DAEMONIZE=0\n"
      "BIND_INTERFACE_IP=192.0.2.4\n"
      "IMEX_CMD_PORT=\n"
      "IMEX_CMD_UNIX_DOMAIN_PATH=/run/a=b.sock\n"
      "IMEX_NODE_DISCONNECTED_GRACE_TIME=-1\n"
      "SOMETHING_NEW=1\n");
  REQUIRE(config);
  CHECK_FALSE(config->command_enabled);
  CHECK(config->log_level == 2);
  CHECK(config->log_file.empty());
  CHECK_FALSE(config->daemonize);
  CHECK(config->bind_address == "192.0.2.4");
  CHECK_FALSE(config->command_port);
  CHECK(config->command_socket == "/run/a=b.sock");
  CHECK(config->grace_seconds == -1);
  CHECK(config->server_port == 50000);
  CHECK(config->unknown_keys == std::vector<std::string>{"SOMETHING_NEW"});
}

TEST_CASE("a bad value in the configuration is refused with its key", "[sandbox][tool]") {
  struct Row {
    const char* line;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {"LOG_LEVEL=5", "Invalid value 5 for LOG_LEVEL"},
      {"SERVER_PORT=70000", "Invalid value 70000 for SERVER_PORT"},
      {"DAEMONIZE=yes", "Invalid value yes for DAEMONIZE"},
      {"IMEX_WAIT_FOR_QUORUM=SOME", "IMEX_WAIT_FOR_QUORUM: use RECOVERY or NONE"},
      {"IMEX_ENABLE_AUTH_ENCRYPTION=1\nIMEX_AUTH_ENCRYPTION_MODE=X", "IMEX_AUTH_ENCRYPTION_MODE"},
      {"just words", "neither a comment nor KEY=VALUE"},
  }));
  const auto config = parse_imex_config(row.line);
  REQUIRE_FALSE(config);
  CHECK(config.error().text().find(row.says) != std::string::npos);
}

TEST_CASE("an encryption mode counts only while encryption is on", "[sandbox][tool]") {
  CHECK(parse_imex_config("IMEX_ENABLE_AUTH_ENCRYPTION=0\nIMEX_AUTH_ENCRYPTION_MODE=X"));
}

TEST_CASE("a node finds its own line by what it binds to, then by its interfaces",
          "[sandbox][tool]") {
  const std::vector<std::string> nodes = {"192.0.2.1", "192.0.2.2", "192.0.2.3"};
  CHECK(find_self(nodes, {}, {"192.0.2.2", "192.0.2.3"})->index == 1);
  CHECK(find_self(nodes, {"192.0.2.3"}, {"192.0.2.2", "192.0.2.3"})->index == 2);
  CHECK_FALSE(find_self(nodes, {}, {"127.0.0.1"}));
  CHECK_FALSE(find_self({""}, {""}, {""}));  // a name that has no address
}

TEST_CASE("names are resolved by the hosts file, addresses by themselves", "[sandbox][tool]") {
  const std::string hosts =
      "127.0.0.1 localhost\n"
      "# 192.0.2.9 a\n"
      "192.0.2.1\ta b.c # c\n"
      "192.0.2.2 a\n";
  CHECK(address_of("a", hosts) == "192.0.2.1");
  CHECK(address_of("b.c", hosts) == "192.0.2.1");
  CHECK(address_of("c", hosts).empty());
  CHECK(address_of("192.0.2.7", hosts) == "192.0.2.7");
}

TEST_CASE("only equal nodes files have the same key", "[sandbox][tool]") {
  CHECK(parse_nodes("# x\n a \n\nb\n") == std::vector<std::string>{"a", "b"});
  CHECK(nodes_key({"a", "b"}) == nodes_key(parse_nodes("a\nb")));
  CHECK(nodes_key({"a", "b"}) != nodes_key({"b", "a"}));
  CHECK(nodes_key({"ab"}) != nodes_key({"a", "b"}));
}

TEST_CASE("a daemon passes its states in order, slowly or never when told so", "[sandbox][tool]") {
  CHECK(imex_state(0ms, {}) == "INITIALIZING");
  CHECK(imex_state(60ms, {}) == "INIT_GPU");
  CHECK(imex_state(100ms, {}) == "READY");
  CHECK(imex_state(9s, {.slow_start = 10}) == "INIT_GPU");
  CHECK(imex_state(10s, {.slow_start = 10}) == "READY");
  CHECK(imex_state(1h, {.state = "WAITING_FOR_PEERS"}) == "WAITING_FOR_PEERS");
}

}  // namespace
}  // namespace nvdra::sandbox
