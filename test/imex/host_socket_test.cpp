#include "imex/host_socket.hpp"

#include "base/within.hpp"
#include "catch.hpp"
#include "fake/driver_root.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <csignal>

namespace nvdra::imex {
namespace {

using fake::FakeNode;

const std::string ctl = "/usr/bin/nvidia-imex-ctl";
const std::string socket_path = "/etc/nvidia-imex/imex_ctrl.sock";

HostService service_of(const FakeNode& node, Duration limit = 20s) {
  return {.root = {.here = node.path(), .host = "/"}, .socket = socket_path, .limit = limit};
}

HostState ask(HostSocket& socket) {
  asio::io_context loop(1);
  std::optional<HostState> got;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        HostState state = co_await socket.probe();
        got = std::move(state);
      },
      asio::detached);
  loop.run();
  REQUIRE(got);
  return *got;
}

HostState ask(const HostService& service) {
  RealTime time;
  HostSocket socket(service, time);
  return ask(socket);
}

}  // namespace

TEST_CASE("the tool is run in the driver root with the socket's path there",
          "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(ctl, "out READY");
  const Fd listener = node.socket(socket_path);
  CHECK(is_ready(ask(service_of(node))));
  REQUIRE(node.asked(ctl).size() == 1);
  CHECK_THAT(node.asked(ctl)[0], Catch::EndsWith(" -q --u=/etc/nvidia-imex/imex_ctrl.sock"));
}

TEST_CASE("what the tool prints and how it ends becomes the state", "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  struct Row {
    const char* does;
    const char* state;
    const char* told;
  };
  const Row row = GENERATE(values<Row>({
      {"out NOT_READY", "not_ready", "\"NOT_READY\""},
      {"out NOT READY", "not_ready", "\"NOT READY\""},
      {"out \x01\x02garbage", "not_ready", "garbage"},
      {"err READY", "not_ready", "nothing instead of READY"},
      {"out some warning\nout READY", "ready", "READY"},
      {"err cannot read nodes\nexit 255", "tool_failed",
       "(exit status 255) and printed: cannot read nodes"},
      {"out READY\nexit 1", "tool_failed", "(exit status 1) and printed: READY"},
      {"sleep 300\nout READY", "ready", "READY"},
  }));
  INFO(row.does);
  const FakeNode node;
  node.tool(ctl, row.does);
  const Fd listener = node.socket(socket_path);
  const HostState state = ask(service_of(node));
  CHECK(name(state) == row.state);
  CHECK_THAT(tell(state, service_of(node)).sentence(), Catch::Contains(row.told));
}

TEST_CASE("a tool that hangs is no answer, and is gone afterwards", "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(ctl, "wait /never");
  const Fd listener = node.socket(socket_path);
  const HostState state = ask(service_of(node, 200ms));
  CHECK(name(state) == "no_answer");
  REQUIRE(node.asked(ctl).size() == 1);
  CHECK(::kill(std::stoi(node.asked(ctl)[0]), 0) != 0);
}

TEST_CASE("no child is started while there is nobody to ask", "[imex][host_socket]") {
  const FakeNode node;
  node.tool(ctl, "out READY");
  const auto seen = [&] { return tell(ask(service_of(node)), service_of(node)).seen; };

  CHECK_THAT(seen(), Catch::Contains("does not exist"));
  node.link(socket_path, "/run/nowhere");
  CHECK_THAT(seen(), Catch::Contains("does not exist"));
  std::filesystem::remove(node.path(socket_path));
  node.file(socket_path, "x");
  CHECK_THAT(seen(), Catch::Contains("is not a socket"));
  node.socket(socket_path).reset();
  CHECK_THAT(seen(), Catch::Contains("nobody listens"));
  const Fd bound = node.socket(socket_path, 0);
  CHECK_THAT(seen(), Catch::Contains("nobody listens"));
  CHECK(node.asked(ctl).empty());
}

TEST_CASE("a missing tool and a missing driver root are told apart", "[imex][host_socket]") {
  const FakeNode node;
  CHECK(name(ask(service_of(node))) == "tool_missing");
  HostService nowhere = service_of(node);
  nowhere.root.here += "/gone";
  CHECK(name(ask(nowhere)) == "driver_root_missing");
}

TEST_CASE("a tool that cannot be executed is named with the reason", "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.file(ctl, "not a program", 0755);
  const Fd listener = node.socket(socket_path);
  const HostState state = ask(service_of(node));
  CHECK(name(state) == "tool_failed");
  CHECK_THAT(tell(state, service_of(node)).seen, Catch::Contains("cannot be started"));
}

TEST_CASE("a socket behind a link and below a very long root is reached",
          "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode outer;
  HostService service = service_of(outer);
  const std::string deep = "/" + std::string(120, 'd');
  outer.directory(deep + "/dev");
  outer.tool(deep + ctl, "out READY");
  outer.link(deep + "/var/run", "/run");
  const Fd listener = outer.socket(deep + "/run/imex.sock");
  service.root.here = outer.path(deep);
  service.socket = "/var/run/imex.sock";
  CHECK(is_ready(ask(service)));
}

TEST_CASE("questions at the same time share one child", "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(ctl, "sleep 200\nout READY");
  const Fd listener = node.socket(socket_path);
  asio::io_context loop(1);
  RealTime time;
  HostSocket socket(service_of(node), time);
  int ready = 0;
  for (int i = 0; i < 5; ++i)
    asio::co_spawn(
        loop,
        [&]() -> Async<void> {
          const HostState state = co_await socket.probe();
          if (is_ready(state)) ++ready;
        },
        asio::detached);
  loop.run();
  CHECK(ready == 5);
  CHECK(node.asked(ctl).size() == 1);
}

TEST_CASE("when the claim that asks goes away, another one asks again",
          "[imex][host_socket][root]") {
  if (fake::must_skip_root_tests()) return;
  const FakeNode node;
  node.tool(ctl, "wait /go\nout READY");
  const Fd listener = node.socket(socket_path);
  asio::io_context loop(1);
  RealTime time;
  HostSocket socket(service_of(node), time);
  asio::cancellation_signal stop;
  bool first_ended = false;
  std::optional<HostState> second;
  asio::co_spawn(
      loop,
      [&]() -> Async<Result<void>> {
        const HostState state = co_await socket.probe();
        (void)state;
        co_return ok();
      },
      asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr thrown, Result<void>) {
        first_ended = thrown != nullptr;
      }));
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        HostState state = co_await socket.probe();
        second = std::move(state);
      },
      asio::detached);
  const auto run_until = [&](auto condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) loop.run_for(10ms);
    REQUIRE(condition());
  };
  run_until([&] { return node.asked(ctl).size() == 1; });
  stop.emit(asio::cancellation_type::terminal);
  run_until([&] { return node.asked(ctl).size() == 2; });
  node.file("/go");
  run_until([&] { return second.has_value(); });
  CHECK(first_ended);
  CHECK(is_ready(*second));
}

TEST_CASE("a waiting claim is woken when the socket appears, even with its directory",
          "[imex][host_socket]") {
  const FakeNode node;
  node.tool(ctl, "out READY");
  const bool with_directory = GENERATE(true, false);
  if (!with_directory) node.directory("/etc/nvidia-imex");
  asio::io_context loop(1);
  RealTime time;
  HostSocket socket(service_of(node), time, 1h);
  bool waiting = false;
  bool woken = false;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        const HostState state = co_await socket.probe();
        CHECK(name(state) == "no_socket");
        waiting = true;
        while (!std::filesystem::exists(node.path(socket_path))) {
          Result<void> changed = co_await within(time, 20s, socket.wait_change());
          REQUIRE(changed);
          const HostState again = co_await socket.probe();
          (void)again;
        }
        woken = true;
      },
      asio::detached);
  while (!waiting) loop.run_one();
  loop.run_for(20ms);
  CHECK_FALSE(woken);
  const Fd listener = node.socket(socket_path);
  loop.run_for(20s);
  CHECK(woken);
}

TEST_CASE("a change between question and wait is not missed", "[imex][host_socket]") {
  const FakeNode node;
  node.tool(ctl, "out READY");
  node.directory("/etc/nvidia-imex");
  asio::io_context loop(1);
  RealTime time;
  HostSocket socket(service_of(node), time, 1h);
  bool woken = false;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        const HostState state = co_await socket.probe();
        (void)state;
        const Fd listener = node.socket(socket_path);
        const Result<void> changed = co_await within(time, 20s, socket.wait_change());
        woken = changed.has_value();
      },
      asio::detached);
  loop.run();
  CHECK(woken);
}

TEST_CASE("without any change a wait ends after the interval", "[imex][host_socket]") {
  const FakeNode node;
  asio::io_context loop(1);
  RealTime time;
  HostSocket socket(service_of(node), time, 60ms);
  const Instant start = Clock::now();
  bool ended = false;
  asio::co_spawn(
      loop,
      [&]() -> Async<void> {
        const HostState state = co_await socket.probe();
        (void)state;
        const Result<void> changed = co_await within(time, 20s, socket.wait_change());
        ended = changed.has_value();
      },
      asio::detached);
  loop.run();
  CHECK(ended);
  CHECK(Clock::now() - start >= 50ms);
}

}  // namespace nvdra::imex
