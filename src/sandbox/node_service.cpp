#include "sandbox/node_service.hpp"

#include "base/try.hpp"
#include "base/within.hpp"

#include <fmt/format.h>

#include <csignal>

namespace nvdra::sandbox {
namespace {

constexpr Duration restart_after = 1s;
constexpr Duration stop_limit = 10s;
constexpr Duration command_limit = 60s;

Async<Result<void>> until_inactive(HostService* service, Event* changed) {
  for (auto seen = changed->count(); service->active();) seen = co_await changed->wait(seen);
  co_return ok();
}

Output answer(int status, std::string out, std::string err = {}) {
  return {.exit = {.code = status, .signal = {}}, .out = std::move(out), .err = std::move(err)};
}

}  // namespace

HostService::HostService(asio::any_io_executor executor, Time& time, std::string driver_root)
    : executor_(executor),
      time_(time),
      root_(std::move(driver_root)),
      changed_(std::move(executor)) {}

Result<void> HostService::start() {
  wanted_ = true;
  if (child_) return ok();
  const Command command{.program = "/usr/bin/nvidia-imex",
                        .arguments = {"-c", "/etc/nvidia-imex/config.cfg"},
                        .root = root_};
  TRY(Child child, nvdra::start(command, executor_, true));
  child_.emplace(std::move(child));
  changed_.notify();
  return ok();
}

Async<Result<void>> HostService::run() {
  for (std::uint64_t seen = changed_.count();;) {
    while (!child_) seen = co_await changed_.wait(seen);
    Result<Exit> ended = co_await child_->wait();
    child_.reset();
    changed_.notify();
    if (!wanted_ || (ended && ended->success())) continue;
    co_await time_.sleep(restart_after);
    if (wanted_) (void)start().has_value();
  }
}

Async<void> HostService::stop() {
  wanted_ = false;
  signal(SIGTERM);
  Result<void> gone = co_await within(time_, stop_limit, until_inactive(this, &changed_));
  if (gone) co_return;
  signal(SIGKILL);
  gone = co_await within(time_, stop_limit, until_inactive(this, &changed_));
}

void HostService::signal(int number) {
  if (child_) (void)child_->signal(number).has_value();
}

Async<Result<Output>> NodeShell::run(std::vector<std::string> command) {
  if (!command.empty() && command[0] == "sudo") command.erase(command.begin());
  if (command.empty()) co_return refuse("no command was given");
  if (command[0] == "systemctl") {
    Output told = co_await systemctl({command.begin() + 1, command.end()});
    co_return told;
  }
  const Command inside{
      .program = command[0],
      .arguments = {command.begin() + 1, command.end()},
      .environment = std::vector<std::string>{"PATH=/usr/bin:/usr/sbin:/bin:/sbin"},
      .root = root_};
  Result<Output> output = co_await nvdra::run(inside, time_, {.time = command_limit});
  co_return output;
}

Async<Output> NodeShell::systemctl(std::vector<std::string> arguments) {
  const std::string verb = arguments.empty() ? "" : arguments[0];
  const std::string unit = arguments.size() == 2 ? arguments[1] : "";
  if (unit != "nvidia-imex.service" && unit != "nvidia-imex")
    co_return answer(5, "", fmt::format("Unit {} could not be found.\n", unit));
  if (verb == "is-active") {
    const bool active = service_.active();
    co_return answer(active ? 0 : 3, active ? "active\n" : "inactive\n");
  }
  if (verb == "stop" || verb == "restart") co_await service_.stop();
  if (verb == "stop") co_return answer(0, "");
  if (verb != "start" && verb != "restart")
    co_return answer(1, "", fmt::format("Unknown command verb {}.\n", verb));
  const Result<void> started = service_.start();
  if (started) co_return answer(0, "");
  co_return answer(1, "", started.error().text() + "\n");
}

}  // namespace nvdra::sandbox
