#include "sandbox/node_service.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "base/within.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <span>

namespace nvdra::sandbox {
namespace {

constexpr Duration restart_after = 1s;
constexpr Duration stop_limit = 10s;
constexpr Duration command_limit = 60s;

Async<Result<void>> until_inactive(HostService* service, Event* changed) {
  for (auto seen = changed->count(); service->active();) seen = co_await changed->wait(seen);
  co_return ok();
}

// A process's parent and name; nothing when it has gone.
std::optional<std::pair<pid_t, std::string>> look_at(pid_t process) {
  const Result<std::string> stat = read_file(fmt::format("/proc/{}/stat", process));
  if (!stat) return std::nullopt;
  const auto open = stat->find('(');
  const auto close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > stat->size())
    return std::nullopt;
  const std::string_view rest = std::string_view(*stat).substr(close + 4);  // ") S "
  const auto parent = imex::parse_number<pid_t>(rest.substr(0, rest.find(' ')));
  return std::pair(parent.value_or(0), stat->substr(open + 1, close - open - 1));
}

std::optional<int> signal_named(std::string_view word) {
  for (const auto& [name, number] :
       {std::pair{"KILL", SIGKILL}, std::pair{"TERM", SIGTERM}, std::pair{"STOP", SIGSTOP},
        std::pair{"CONT", SIGCONT}, std::pair{"USR1", SIGUSR1}, std::pair{"INT", SIGINT}})
    if (word == name || word == std::to_string(number)) return number;
  return std::nullopt;
}

Output answer(int status, std::string out, std::string err = {}) {
  return {.exit = {.code = status, .signal = {}}, .out = std::move(out), .err = std::move(err)};
}

}  // namespace

std::vector<pid_t> processes_named(std::string_view name, const std::vector<pid_t>& roots) {
  std::map<pid_t, std::pair<pid_t, std::string>> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (const auto id = imex::parse_number<pid_t>(entry.path().filename().string()))
      if (auto seen = look_at(*id)) all[*id] = *std::move(seen);
  std::vector<pid_t> found;
  for (const auto& [id, process] : all) {
    if (process.second != name.substr(0, 15)) continue;  // the kernel keeps 15 characters
    for (pid_t above = id; all.contains(above); above = all[above].first)
      if (std::ranges::find(roots, above) != roots.end()) {
        found.push_back(id);
        break;
      }
  }
  return found;
}

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
  if (command[0] == "pgrep" || command[0] == "pkill") co_return pick(command);
  const Command inside{
      .program = command[0],
      .arguments = {command.begin() + 1, command.end()},
      .environment = std::vector<std::string>{"PATH=/usr/bin:/usr/sbin:/bin:/sbin"},
      .root = root_};
  Result<Output> output = co_await nvdra::run(inside, time_, {.time = command_limit});
  co_return output;
}

// pgrep and pkill, as far as they are needed here; 1 = there is no such process.
Output NodeShell::pick(const std::vector<std::string>& command) {
  std::optional<int> signal = command[0] == "pkill" ? std::optional(SIGTERM) : std::nullopt;
  std::string name;
  for (const std::string& word : std::span(command).subspan(1)) {
    if (word == "-x") continue;
    const bool flag = word.starts_with('-');
    if (flag) signal = signal_named(std::string_view(word).substr(1));
    if (flag && !signal) return answer(2, "", fmt::format("unknown option {}\n", word));
    if (!flag) name = word;
  }
  std::vector<pid_t> roots = containers_();
  if (const auto service = service_.pid()) roots.push_back(*service);
  const std::vector<pid_t> found = processes_named(name, roots);
  for (const pid_t process : found)
    if (signal) ::kill(process, *signal);
  const std::string list = fmt::format("{}\n", fmt::join(found, "\n"));
  return answer(found.empty() ? 1 : 0, signal || found.empty() ? "" : list);
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
