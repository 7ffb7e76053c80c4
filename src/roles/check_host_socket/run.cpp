#include "roles/check_host_socket/run.hpp"

#include "base/json.hpp"
#include "base/within.hpp"
#include "imex/host_socket.hpp"
#include "roles/check_host_socket/config.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <optional>

namespace nvdra::roles::check_host_socket {
namespace {

constexpr int exit_usage = 2;

void print(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

int exit_status(const imex::HostState& state) {
  struct Status {
    int operator()(const imex::Ready&) const { return 0; }
    int operator()(const imex::NoSocket&) const { return 1; }
    int operator()(const imex::OtherWord&) const { return 1; }
    int operator()(const imex::ToolFailed&) const { return 1; }
    int operator()(const imex::ToolMissing&) const { return 3; }
    int operator()(const imex::DriverRootMissing&) const { return 3; }
    int operator()(const imex::NoAnswer&) const { return 4; }
  };
  return std::visit(Status{}, state);
}

std::string as_text(const imex::HostState& state, const Config& config) {
  const imex::Told told = imex::tell(state, config.service);
  return told.check.empty() ? told.seen + "\n" : told.seen + "\n  " + told.check + "\n";
}

std::string as_json(const imex::HostState& state, const Config& config, Duration waited) {
  const imex::Told told = imex::tell(state, config.service);
  const JsonObject object{
      {"ready", imex::is_ready(state)},
      {"state", imex::name(state)},
      {"socket", config.service.root.host_path(config.service.socket)},
      {"driverRoot", config.service.root.host},
      {"seen", told.seen},
      {"check", told.check},
      {"waitedSeconds", std::chrono::duration_cast<std::chrono::seconds>(waited).count()},
  };
  return to_text(object) + "\n";
}

// Asks, and within the time to wait asks again. Each new state on the way is told on stderr.
Async<imex::HostState> ask(const Config& config, Time& time) {
  imex::HostSocket socket(config.service, time);
  const Instant until = time.now() + config.wait;
  std::string told;
  for (;;) {
    imex::HostState state = co_await socket.probe();
    const Duration left = until - time.now();
    if (imex::is_ready(state) || left <= Duration::zero()) co_return state;
    std::string seen = imex::tell(state, config.service).seen;
    if (seen != told) print(stderr, "waiting: " + seen + "\n");
    told = std::move(seen);
    const Result<void> changed = co_await within(time, left, socket.wait_change());
    (void)changed;
  }
}

Async<Result<void>> answer(const Config& config, Time& time, int& status) {
  const Instant start = time.now();
  const imex::HostState state = co_await ask(config, time);
  print(stdout, config.format == Format::json ? as_json(state, config, time.now() - start)
                                              : as_text(state, config));
  status = exit_status(state);
  co_return ok();
}

int run_loop(const Config& config) {
  asio::io_context loop(1);
  RealTime time;
  int status = 1;
  std::exception_ptr bug;
  asio::cancellation_signal stop;
  asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code failed, int number) {
    if (failed) return;
    status = 128 + number;
    stop.emit(asio::cancellation_type::terminal);
  });
  asio::co_spawn(loop, answer(config, time, status),
                 asio::bind_cancellation_slot(stop.slot(),
                                              [&](std::exception_ptr thrown, const Result<void>&) {
                                                signals.cancel();
                                                if (thrown && status < 128) bug = thrown;
                                              }));
  loop.run();
  if (bug) std::rethrow_exception(bug);
  return status;
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    print(stdout,
          "nvdra check-host-socket: is this node's nvidia-imex service ready?\n\n" +
              flags_help(flags()) +
              "\nexit status: 0 ready, 1 not ready, 2 usage, 3 tool or driver root missing, "
              "4 no answer in time\n");
    return 0;
  }
  const Result<Config> config = configure(arguments, environment);
  if (!config) {
    print(stderr, "Error: " + config.error().text() + "\n");
    return exit_usage;
  }
  return run_loop(*config);
}

}  // namespace nvdra::roles::check_host_socket
