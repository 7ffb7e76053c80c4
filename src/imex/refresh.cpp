#include "imex/refresh.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <csignal>

namespace nvdra::imex {
namespace {

constexpr Duration look_again = 200ms;

bool has_signal(std::string_view line, std::string_view name, int number) {
  if (!line.starts_with(name)) return false;
  const std::string_view digits = trim(line.substr(name.size()));
  std::uint64_t mask = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
  return (mask >> (number - 1)) & 1u;
}

}  // namespace

Instant refresh_due(std::optional<Instant> last, Instant now) {
  return last ? std::max(now, *last + refresh_window) : now;
}

bool survives(std::string_view proc_status, int number) {
  while (const auto line = next_line(proc_status))
    for (const std::string_view name : {"SigCgt:", "SigIgn:"})
      if (has_signal(*line, name, number)) return true;
  return false;
}

bool Refresher::survives_now(pid_t pid) {
  const Result<std::string> status = read_file(fmt::format("/proc/{}/status", pid));
  return status && survives(*status, SIGUSR1);
}

Refresher::Refresher(asio::any_io_executor executor, Time& time, Supervisor& supervisor,
                     Survives survives)
    : time_(time),
      supervisor_(supervisor),
      survives_(std::move(survives)),
      wanted_(std::move(executor)) {}

void Refresher::want() {
  wanted_.notify();
}

Async<Result<void>> Refresher::run() {
  std::uint64_t served = 0;
  for (;;) {
    const auto count = co_await wanted_.wait(served);
    (void)count;
    const pid_t pid = supervisor_.pid();
    if (!supervisor_.up()) {
      served = wanted_.count();
      continue;
    }
    if (pid != last_pid_) last_.reset();
    last_pid_ = pid;
    const Instant now = time_.now();
    const Instant due = refresh_due(last_, now);
    if (due > now) {
      co_await time_.sleep(due - now);
      continue;
    }
    if (!survives_(pid)) {
      co_await time_.sleep(look_again);
      continue;
    }
    served = wanted_.count();
    last_ = now;
    ++sent_;
    const Result<void> signalled = supervisor_.signal(SIGUSR1);
    if (!signalled) LOG_INFO(1, "Cannot signal nvidia-imex", {{"err", signalled.error().text()}});
  }
}

}  // namespace nvdra::imex
