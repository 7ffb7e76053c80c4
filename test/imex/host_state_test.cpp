#include "imex/host_state.hpp"

#include "catch.hpp"

namespace nvdra::imex {
namespace {

Output printed(std::string out, int status = 0, std::string err = "") {
  Output output;
  output.exit.code = status;
  output.out = std::move(out);
  output.err = std::move(err);
  return output;
}

const HostService on_host{.root = {.here = "/driver-root", .host = "/"}};

}  // namespace

TEST_CASE("only the exact word READY on the last line is ready", "[imex][host_state]") {
  struct Row {
    const char* out;
    std::optional<std::string> other_word;  // none = ready
  };
  const Row row = GENERATE(values<Row>({
      {"READY\n", {}},
      {"  READY \r\n\n", {}},
      {"a warning\nREADY\n", {}},
      {"NOT_READY\n", "NOT_READY"},
      {"NOT READY\n", "NOT READY"},
      {"READY stopAtReady: 0\n", "READY stopAtReady: 0"},
      {"ready\n", "ready"},
      {"READY\nSHUTTING_DOWN\n", "SHUTTING_DOWN"},
      {"INITIALIZING\n", "INITIALIZING"},
      {"STARTING_AUTH_SERVER\n", "STARTING_AUTH_SERVER"},
      {"WAITING_FOR_PEERS\n", "WAITING_FOR_PEERS"},
      {"WAITING_FOR_RECOVERY\n", "WAITING_FOR_RECOVERY"},
      {"INIT_GPU\n", "INIT_GPU"},
      {"UNAVAILABLE\n", "UNAVAILABLE"},
      {"", ""},
      {"\n \n", ""},
  }));
  INFO(row.out);
  const HostState state = judge(printed(row.out));
  CHECK(is_ready(state) == !row.other_word);
  if (row.other_word) {
    REQUIRE(std::holds_alternative<OtherWord>(state));
    CHECK(std::get<OtherWord>(state).word == *row.other_word);
  }
}

TEST_CASE("READY on stderr or with an exit status is not ready", "[imex][host_state]") {
  CHECK_FALSE(is_ready(judge(printed("", 0, "READY\n"))));
  CHECK_FALSE(is_ready(judge(printed("READY\n", 1))));
  const std::string grpc =
      "Query Status returned error code: 14 - failed to connect to all addresses; last error: "
      "UNKNOWN: ipv6:%5B::%5D:50005: Address family not supported by protocol";
  const HostState failed = judge(printed("", 1, grpc + "\n"));
  REQUIRE(std::holds_alternative<ToolFailed>(failed));
  CHECK(std::get<ToolFailed>(failed).how == "exit status 1");
  CHECK(std::get<ToolFailed>(failed).output == grpc);
  CHECK(std::get<ToolFailed>(judge(printed("", 255))).how == "exit status 255");
}

TEST_CASE("each state is one sentence with the host's path, what was seen and what to check",
          "[imex][host_state]") {
  struct Row {
    HostState state;
    const char* name;
    const char* seen;
    const char* check;
  };
  const Row row = GENERATE(values<Row>({
      {NoSocket{NoSocket::Why::missing}, "no_socket", "does not exist", "IMEX_CMD_ENABLED=1"},
      {NoSocket{NoSocket::Why::not_a_socket}, "no_socket", "is not a socket", "remove it"},
      {NoSocket{NoSocket::Why::no_listener}, "no_socket", "nobody listens",
       "IMEX_CMD_UNIX_DOMAIN_PATH=/etc/nvidia-imex/imex_ctrl.sock"},
      {NoAnswer{2500ms}, "no_answer", "no answer within 2.5 s", "systemctl status nvidia-imex"},
      {OtherWord{"INITIALIZING"}, "not_ready", "it answered \"INITIALIZING\"", "wait for it"},
      {OtherWord{"WAITING_FOR_PEERS"}, "not_ready", "\"WAITING_FOR_PEERS\"", "other nodes"},
      {OtherWord{""}, "not_ready", "nothing instead of READY", "systemctl status nvidia-imex"},
      {ToolMissing{{.here = "/driver-root", .host = "/"}}, "tool_missing",
       "nvidia-imex-ctl not found in the driver root / (searched /, /opt/bin",
       "nvidia-imex is installed"},
      {DriverRootMissing{}, "driver_root_missing", "driver root / is not a directory",
       "nvidiaDriverRoot"},
      {ToolFailed{"exit status 255", "no nodes"}, "tool_failed",
       "(exit status 255) and printed: no nodes", "IMEX_CMD_ENABLED=1"},
  }));
  const Told told = tell(row.state, on_host);
  INFO(told.sentence());
  CHECK(name(row.state) == row.name);
  CHECK_THAT(told.seen, Catch::Contains(" /etc/nvidia-imex/imex_ctrl.sock") ||
                            Catch::StartsWith("/etc/nvidia-imex/imex_ctrl.sock"));
  CHECK_THAT(told.seen, Catch::Contains(row.seen));
  CHECK_THAT(told.check, Catch::Contains(row.check));
  CHECK(told.sentence() == told.seen + "; " + told.check);
  CHECK_THAT(told.sentence(), !Catch::Contains("\n"));
}

TEST_CASE("a driver root elsewhere on the host shows in the socket's path", "[imex][host_state]") {
  const HostService service{.root = {.here = "/driver-root", .host = "/run/nvidia/driver"},
                            .socket = "/var/run/imex.sock"};
  const Told told = tell(NoSocket{NoSocket::Why::missing}, service);
  CHECK_THAT(told.seen, Catch::Contains("/run/nvidia/driver/var/run/imex.sock does not exist"));
  CHECK_THAT(told.check, Catch::Contains("IMEX_CMD_UNIX_DOMAIN_PATH=/var/run/imex.sock"));
  CHECK_THAT(tell(Ready{}, service).sentence(), Catch::EndsWith("imex.sock is READY"));
}

TEST_CASE("a tool looked for in the process's own root says why", "[imex][host_state]") {
  const HostService service{.root = {.here = "/x", .host = "/run/nvidia/driver"}};
  CHECK_THAT(tell(ToolMissing{{}}, service).seen,
             Catch::EndsWith("because /run/nvidia/driver has no directory dev"));
}

}  // namespace nvdra::imex
