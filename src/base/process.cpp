#include "base/process.hpp"

#include "base/log.hpp"
#include "base/process_start.hpp"
#include "base/try.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace nvdra {

std::string Exit::text() const {
  if (code) return fmt::format("exit status {}", *code);
  if (signal) return fmt::format("killed by signal {}", *signal);
  return "not ended";
}

Result<Child> start(const Command& command, asio::any_io_executor executor, bool pipe_output) {
  if (!pipe_output) return start_with(command, executor, {});
  TRY(Pipe pipe, make_pipe());
  TRY(Child child, start_with(command, executor, {pipe.write.get(), pipe.write.get()}));
  child.output = std::move(pipe.read);
  return child;
}

Child::Child(pid_t pid, Fd pidfd, asio::any_io_executor executor, bool own_group)
    : pid_(pid), pidfd_(std::move(pidfd)), executor_(std::move(executor)), own_group_(own_group) {}

Child::Child(Child&&) noexcept = default;

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  kill_and_reap();
  output = std::move(other.output);
  pid_ = other.pid_;
  pidfd_ = std::move(other.pidfd_);
  executor_ = std::move(other.executor_);
  own_group_ = other.own_group_;
  exit_ = other.exit_;
  return *this;
}

Child::~Child() {
  kill_and_reap();
}

Async<Result<void>> Child::ended() {
  if (exit_) co_return ok();
  Fd copy(::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy) co_return errno_failure("wait for child: fcntl");
  asio::posix::stream_descriptor watch(executor_, copy.release());
  co_await watch.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
  co_return ok();
}

Async<Result<Exit>> Child::wait() {
  Result<void> over = co_await ended();
  if (!over) co_return std::move(over).failure();
  co_return reap();
}

Result<Exit> Child::reap() {
  if (exit_) return *exit_;
  siginfo_t told{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &told, WEXITED) != 0)
    if (errno != EINTR) return errno_failure("wait for child");
  Exit exit;
  if (told.si_code == CLD_EXITED)
    exit.code = told.si_status;
  else
    exit.signal = told.si_status;
  exit_ = exit;
  return exit;
}

Result<void> Child::signal(int number) {
  if (exit_) return ok();
  if (::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) != 0 && errno != ESRCH)
    return errno_failure(fmt::format("signal child {}", pid_));
  return ok();
}

Result<void> Child::signal_group(int number) {
  if (!own_group_) return signal(number);
  // Until it is reaped the child keeps its number, and with it the group's, from being used again.
  if (exit_) return ok();
  if (::kill(-pid_, number) != 0 && errno != ESRCH)
    return errno_failure(fmt::format("signal group of child {}", pid_));
  return ok();
}

void Child::kill_and_reap() {
  if (!pidfd_ || exit_) return;
  (void)signal_group(SIGKILL).has_value();
  pollfd end{pidfd_.get(), POLLIN, 0};
  constexpr int patience = 2000;  // ms
  if (::poll(&end, 1, patience) == 1) {
    (void)reap().has_value();
    return;
  }
  LOG_WARNING("A killed child does not end, leaving it", {{"pid", pid_}});
}

}  // namespace nvdra
