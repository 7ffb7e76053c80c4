#include "roles/check_host_socket/run.hpp"

#include "base/json.hpp"
#include "base/process.hpp"
#include "catch.hpp"
#include "fake/driver_root.hpp"
#include "fake/run_loop.hpp"
#include "roles/check_host_socket/config.hpp"

#include <csignal>

namespace nvdra::roles::check_host_socket {
namespace {

using fake::FakeNode;

const std::string ctl = "/usr/bin/nvidia-imex-ctl";
const std::string socket_path = "/run/imex.sock";

Output check(std::vector<std::string> arguments) {
  asio::io_context loop(1);
  RealTime time;
  const Command command{.program = CHECK_HOST_SOCKET,
                        .arguments = std::move(arguments),
                        .environment = std::vector<std::string>{}};
  const Result<Output> output = fake::run(loop, run(command, time, {.time = 30s}), 40s);
  REQUIRE(output);
  REQUIRE(output->exit.code);
  return *output;
}

std::vector<std::string> on(const FakeNode& node, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"--socket", socket_path, "--driver-root", node.path()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Result<Config> configured(std::vector<std::string> arguments, Environment environment = {}) {
  return configure(arguments, environment);
}

}  // namespace

TEST_CASE("the exit status tells ready, not ready, missing and silent apart",
          "[check_host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  struct Row {
    const char* does;  // nullptr = no tool
    bool listens;
    int status;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {"out READY", true, 0, "is READY\n"},
      {"out READY", false, 1, "/run/imex.sock does not exist\n  check `systemctl status"},
      {"out NOT_READY", true, 1, "it answered \"NOT_READY\"\n"},
      {"err no nodes\nexit 255", true, 1, "(exit status 255) and printed: no nodes\n"},
      {nullptr, true, 3, "nvidia-imex-ctl not found in the driver root"},
      {"wait /never", true, 4, "gave no answer within 0.5 s\n"},
  }));
  const FakeNode node;
  if (row.does) node.tool(ctl, row.does);
  Fd listener;
  if (row.listens) listener = node.socket(socket_path);
  const std::string timeout = row.status == 4 ? "500ms" : "20s";
  const Output output = check(on(node, {"--timeout", timeout}));
  INFO(output.out << output.err);
  CHECK(*output.exit.code == row.status);
  CHECK_THAT(output.out, Catch::Contains(row.says));
  CHECK(output.err.empty());
}

TEST_CASE("a driver root that is not there is exit status 3", "[check_host_socket]") {
  const Output output = check({"--driver-root=/nowhere/at/all"});
  CHECK(*output.exit.code == 3);
  CHECK_THAT(output.out, Catch::Contains("/nowhere/at/all is not a directory"));
}

TEST_CASE("wrong usage is exit status 2 and one line on stderr", "[check_host_socket]") {
  struct Row {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {{"--sockets=/x"}, "sockets"},
      {{"--socket=x"}, "--socket is \"x\"; it must be the absolute path"},
      {{"--socket="}, "--socket is \"\""},
      {{"--driver-root=x"}, "--driver-root is \"x\""},
      {{"--timeout=0s"}, "--timeout is \"0s\"; it must be longer"},
      {{"--timeout=soon"}, "soon"},
      {{"--wait=-1s"}, "--wait is \"-1s\""},
      {{"-o", "yaml"}, "--output is \"yaml\"; it must be text or json"},
      {{"extra"}, "extra"},
  }));
  const Output output = check(row.arguments);
  CHECK(*output.exit.code == 2);
  CHECK(output.out.empty());
  CHECK_THAT(output.err, Catch::StartsWith("Error: ") && Catch::Contains(row.says));
  CHECK(std::count(output.err.begin(), output.err.end(), '\n') == 1);
}

TEST_CASE("as JSON the answer is one object with stable keys", "[check_host_socket]") {
  const FakeNode node;
  node.tool(ctl, "out READY");
  const Output output = check(on(node, {"-o", "json"}));
  CHECK(*output.exit.code == 1);
  const Result<Json> json = parse_json(output.out);
  REQUIRE(json);
  CHECK(bool_or(*json, "ready", true) == false);
  CHECK(text_or_empty(*json, "state") == "no_socket");
  CHECK(text_or_empty(*json, "socket") == node.path(socket_path));
  CHECK(text_or_empty(*json, "driverRoot") == node.path());
  CHECK_THAT(std::string(text_or_empty(*json, "seen")), Catch::EndsWith("does not exist"));
  CHECK_THAT(std::string(text_or_empty(*json, "check")), Catch::Contains("IMEX_CMD_ENABLED=1"));
  CHECK(int_or(*json, "waitedSeconds", -1) == 0);
}

TEST_CASE("with --wait the answer comes as soon as the service is ready",
          "[check_host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(ctl, "out READY");
  asio::io_context loop(1);
  RealTime time;
  const Command command{.program = CHECK_HOST_SOCKET,
                        .arguments = on(node, {"--wait", "30s"}),
                        .environment = std::vector<std::string>{}};
  Result<Child> child = start(command, loop.get_executor(), true);
  REQUIRE(child);
  std::vector<std::string> lines;
  std::optional<Fd> listener;
  const auto take = [&](std::string_view line) {
    lines.emplace_back(line);
    if (!listener) listener = node.socket(socket_path);
  };
  REQUIRE(fake::run(loop, each_line(std::move(child->output), take), 25s));
  const Result<Exit> exit = fake::run(loop, child->wait());
  REQUIRE(exit);
  CHECK(exit->code == 0);
  REQUIRE(lines.size() >= 2);
  CHECK_THAT(lines.front(), Catch::StartsWith("waiting: ") && Catch::EndsWith("does not exist"));
  CHECK_THAT(lines.back(), Catch::EndsWith("is READY"));
}

TEST_CASE("with --wait the last state decides when the time is up", "[check_host_socket]") {
  const FakeNode node;
  node.tool(ctl, "out READY");
  const Instant start = Clock::now();
  const Output output = check(on(node, {"--wait=300ms"}));
  CHECK(*output.exit.code == 1);
  CHECK(Clock::now() - start >= 300ms);
}

TEST_CASE("a signal ends the wait", "[check_host_socket]") {
  const FakeNode node;
  node.tool(ctl, "out READY");
  asio::io_context loop(1);
  const Command command{.program = CHECK_HOST_SOCKET,
                        .arguments = on(node, {"--wait", "1h"}),
                        .environment = std::vector<std::string>{}};
  Result<Child> child = start(command, loop.get_executor(), true);
  REQUIRE(child);
  const auto stop = [&](std::string_view) { CHECK(child->signal(SIGTERM)); };
  REQUIRE(fake::run(loop, each_line(std::move(child->output), stop), 25s));
  const Result<Exit> exit = fake::run(loop, child->wait());
  REQUIRE(exit);
  CHECK(exit->code == 128 + SIGTERM);
}

TEST_CASE("help names every flag and exit status", "[check_host_socket]") {
  const Output output = check({"--help"});
  CHECK(*output.exit.code == 0);
  for (const char* word : {"socket", "driver-root", "timeout", "wait", "output", "4 no answer"})
    CHECK_THAT(output.out, Catch::Contains(word));
}

TEST_CASE("in the plugin's container paths are told as the host knows them",
          "[check_host_socket]") {
  const auto host = [](std::vector<std::string> arguments, Environment environment) {
    const Result<Config> config = configured(std::move(arguments), std::move(environment));
    REQUIRE(config);
    return config->service.root.host;
  };
  CHECK(host({"--driver-root=/driver-root"}, {}) == "/");
  CHECK(host({"--driver-root=/driver-root"}, {{"NVIDIA_DRIVER_ROOT", "/run/nvidia/driver"}}) ==
        "/run/nvidia/driver");
  CHECK(host({"--driver-root=/run/nvidia/driver"}, {}) == "/run/nvidia/driver");
  CHECK(host({}, {{"DRIVER_ROOT_CTR_PATH", "/driver-root"}, {"NVIDIA_DRIVER_ROOT", "/"}}) == "/");
}

TEST_CASE("the socket's path comes from the chart's variable", "[check_host_socket]") {
  const Result<Config> config = configured({}, {{"IMEX_HOST_SOCKET_PATH", "/var/run/x.sock"}});
  REQUIRE(config);
  CHECK(config->service.socket == "/var/run/x.sock");
  const Result<Config> standard = configured({});
  REQUIRE(standard);
  CHECK(standard->service.socket == "/etc/nvidia-imex/imex_ctrl.sock");
  CHECK(standard->service.limit == 5s);
  CHECK(standard->wait == 0s);
}

}  // namespace nvdra::roles::check_host_socket
