#include "sandbox/node_role.hpp"

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>
#include <memory>

namespace nvdra::sandbox {
namespace {

constexpr Duration restart_after = 1s;
constexpr Duration stop_limit = 3s;
constexpr Duration look_every = 20ms;
constexpr std::size_t shown_bytes = 2000;

}  // namespace

RoleProcess::RoleProcess(asio::any_io_executor executor, Time& time, RoleCommand role)
    : executor_(std::move(executor)), time_(time), role_(std::move(role)) {}

Async<Result<void>> RoleProcess::run() {
  while (!stopping_) {
    CO_TRY_VOID(co_await run_once());
    if (!stopping_) co_await time_.sleep(restart_after);
  }
  co_return ok();
}

// An error only when it cannot be started at all.
Async<Result<void>> RoleProcess::run_once() {
  auto log = std::make_shared<Fd>(
      ::open(role_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!*log) co_return errno_failure("write " + role_.log);
  Result<Child> child = start(role_.command, executor_, true);
  if (!child) co_return std::move(child).failure().during(role_.name);
  child_.emplace(*std::move(child));
  ++starts_;
  const auto append = [log](std::string_view line) {
    const std::string text = std::string(line) + "\n";
    const ssize_t written = ::write(log->get(), text.data(), text.size());
    (void)written;  // a full disk loses log lines, nothing else
  };
  Result<void> read = co_await each_line(std::move(child_->output), append);
  (void)read;
  Result<Exit> ended = co_await child_->wait();
  child_.reset();
  append(fmt::format("--- {} has ended: {}", role_.name, ended ? ended->text() : "?"));
  co_return ok();
}

void RoleProcess::signal(int number) {
  if (child_) (void)child_->signal(number).has_value();
}

Async<void> RoleProcess::stop() {
  stopping_ = true;
  signal(SIGTERM);
  for (Duration waited{}; child_ && waited < stop_limit; waited += look_every)
    co_await time_.sleep(look_every);
  signal(SIGKILL);
}

std::string RoleProcess::last_lines() const {
  const Result<std::string> text = read_file(role_.log);
  if (!text) return {};
  return text->size() <= shown_bytes ? *text : text->substr(text->size() - shown_bytes);
}

}  // namespace nvdra::sandbox
