#include "roles/wait_for_driver/run.hpp"

#include "base/event.hpp"
#include "base/inotify.hpp"
#include "base/process.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "roles/wait_for_driver/link.hpp"
#include "roles/wait_for_driver/look.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <set>

namespace nvdra::roles::wait_for_driver {
namespace {

constexpr int exit_usage = 2;
constexpr int hint_every = 6;            // looks
constexpr Duration version_limit = 30s;  // a driver that is just being loaded is slow
constexpr Duration settle = 500ms;       // an installation changes many files

constexpr std::array<Flag, 4> table = {{
    {.name = "driver-root",
     .environment = "NVIDIA_DRIVER_ROOT",
     .otherwise = "/",
     .help = "driver root on the host"},
    {.name = "driver-root-parent",
     .otherwise = "/driver-root-parent",
     .help = "where the parent directory of the driver root is mounted"},
    {.name = "link", .otherwise = "/driver-root", .help = "link to make to the driver root"},
    {.name = "interval",
     .kind = FlagKind::duration,
     .otherwise = "10s",
     .help = "longest pause between two looks"},
}};

struct Config {
  imex::DriverRoot root;  // here = the link
  std::string target;
  Duration interval;
};

void say(std::FILE* stream, const std::string& line) {
  std::fwrite((line + "\n").data(), 1, line.size() + 1, stream);
  std::fflush(stream);
}

void say_at(Time& time, const std::string& line) {
  say(stdout, rfc3339(time.wall()) + "  " + line);
}

// True when the driver answers. Nothing of our environment reaches the tool.
Async<bool> answers(Look found, Time& time) {
  const Command command{.program = found.smi->real,
                        .arguments = {"--version"},
                        .environment = std::vector{"LD_PRELOAD=" + found.nvml->real}};
  const Limits limits{.time = version_limit, .output = 4u << 10};
  const Result<Output> output = co_await nvdra::run(command, time, limits);
  if (!output) {
    say_at(time, fmt::format("{} --version: {}", tool, output.error().text()));
    co_return false;
  }
  say_at(time, fmt::format("{} --version: {}", tool, output->exit.text()));
  if (!output->exit.success()) say(stdout, output->out + output->err);
  co_return output->exit.success();
}

// The directories in which something can appear, as far as they exist.
std::set<std::string> directories_of(const imex::DriverRoot& root) {
  std::set<std::string> directories = {root.here};
  for (const auto searched : {imex::binary_directories(), imex::library_directories()})
    for (const std::string_view directory : searched)
      if (Result<std::string> real = imex::resolve_in_root(root.here, directory))
        directories.insert(*std::move(real));
  return directories;
}

using Watches = std::vector<DirectoryWatch>;

// A directory that cannot be watched is looked at by interval alone.
Watches watches_of(const imex::DriverRoot& root, const asio::any_io_executor& executor) {
  Watches watches;
  for (const std::string& directory : directories_of(root))
    if (Result<DirectoryWatch> watch = DirectoryWatch::open(executor, directory))
      watches.push_back(*std::move(watch));
  return watches;
}

// Children of a group that its first failure stops: whoever is done, ends the wait of all.
Async<Result<void>> until_changed(DirectoryWatch* watch) {
  const Result<void> changed = co_await watch->changed();
  (void)changed;
  co_return refuse("something has changed");
}

Async<Result<void>> until_settled(Time* time, Duration length) {
  co_await time->sleep(length);
  co_return refuse("time is up");
}

Async<void> change_or(Duration interval, Watches& watches, Time& time) {
  auto executor = co_await asio::this_coro::executor;
  const Instant start = time.now();
  TaskGroup group(executor);
  for (DirectoryWatch& watch : watches) group.spawn("watch", until_changed(&watch));
  group.spawn("interval", until_settled(&time, interval));
  const Result<void> ended = co_await group.join();
  (void)ended;
  if (time.now() - start < interval) co_await time.sleep(std::min(settle, interval));
}

Async<Result<void>> wait(Config config, Time& time) {
  auto executor = co_await asio::this_coro::executor;
  for (int attempt = 0;; ++attempt) {
    Watches watches = watches_of(config.root, executor);
    const Look found = look(config.root);
    say_at(time, describe(found));
    if (found.complete()) {
      const bool usable = co_await answers(found, time);
      if (usable) co_return ok();
    }
    if (attempt % hint_every == 0)
      for (const std::string& hint : hints(found)) say(stdout, hint);
    co_await change_or(config.interval, watches, time);
  }
}

Result<Config> configure(std::span<const std::string> arguments, const Environment& environment) {
  TRY(const Args args, parse_args(table, arguments, environment));
  Config config{.root = {.here = args.text("link"), .host = args.text("driver-root")},
                .target = "",
                .interval = args.duration("interval")};
  if (config.root.host.empty()) config.root.host = "/";
  if (!config.root.host.starts_with('/'))
    return refuse(
        fmt::format("--driver-root is \"{}\"; it must be an absolute path", config.root.host));
  if (config.interval <= Duration::zero())
    return refuse(fmt::format("--interval is \"{}\"; it must be longer than 0s",
                              args.values().at("interval")));
  config.target = link_target(args.text("driver-root-parent"), config.root.host);
  return config;
}

int run_loop(const Config& config) {
  asio::io_context loop(1);
  RealTime time;
  std::exception_ptr bug;
  asio::cancellation_signal stop;
  asio::signal_set signals(loop, SIGINT, SIGTERM);
  bool stopped = false;
  signals.async_wait([&](boost::system::error_code failed, int number) {
    if (failed) return;
    say_at(time, number == SIGTERM ? "SIGTERM received, leaving" : "SIGINT received, leaving");
    stopped = true;
    stop.emit(asio::cancellation_type::terminal);
  });
  asio::co_spawn(loop, wait(config, time),
                 asio::bind_cancellation_slot(stop.slot(),
                                              [&](std::exception_ptr thrown, const Result<void>&) {
                                                signals.cancel();
                                                if (thrown && !stopped) bug = thrown;
                                              }));
  loop.run();
  if (bug) std::rethrow_exception(bug);
  return 0;
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    say(stdout, "nvdra wait-for-driver: wait until the NVIDIA driver of this node is usable\n\n" +
                    flags_help(table));
    return 0;
  }
  const Result<Config> config = configure(arguments, environment);
  if (!config) {
    say(stderr, "Error: " + config.error().text());
    return exit_usage;
  }
  if (const Result<void> linked = make_link(config->root.here, config->target); !linked) {
    say(stderr, "Error: " + linked.error().text());
    return 1;
  }
  return run_loop(*config);
}

}  // namespace nvdra::roles::wait_for_driver
