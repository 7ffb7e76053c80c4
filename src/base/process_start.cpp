#include "base/process_start.hpp"

#include "base/args.hpp"
#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>

namespace nvdra {

std::vector<std::string> path_candidates(std::string_view path, std::string_view program) {
  std::vector<std::string> candidates;
  for (std::string_view rest = path; !rest.empty();) {
    std::size_t colon = rest.find(':');
    std::string_view directory = rest.substr(0, colon);
    if (directory.starts_with('/')) candidates.push_back(fmt::format("{}/{}", directory, program));
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  }
  return candidates;
}

namespace {

enum class Stage : int { group, death_signal, streams, root, exec };
constexpr std::array<std::string_view, 5> stage_names{"setpgid", "prctl", "dup2", "chroot", "exec"};

// What the child sends up the pipe when it cannot become the program.
struct Trouble {
  Stage stage;
  int reason;
};

// Everything the child needs, made before it exists: it shares our memory and must not allocate.
struct Plan {
  std::vector<std::string> candidates;  // paths to try, in order
  std::vector<char*> arguments;         // ends with nullptr
  std::vector<char*> environment;       // ends with nullptr
  const char* root = nullptr;
  bool own_group = true;
  std::array<int, 3> streams{-1, -1, -1};
  int trouble = -1;
  pid_t parent = -1;
};

std::string path_variable(const Command& command) {
  constexpr std::string_view key = "PATH=";
  if (command.environment) {
    for (const std::string& entry : *command.environment)
      if (entry.starts_with(key)) return entry.substr(key.size());
  } else {
    Environment ours = process_environment();
    if (auto found = ours.find("PATH"); found != ours.end()) return found->second;
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

std::vector<std::string> candidates_for(const Command& command) {
  if (command.program.empty() || command.program.find('/') != std::string::npos)
    return {command.program};
  return path_candidates(path_variable(command), command.program);
}

// execve() takes pointers to non-const but does not write through them.
char* as_word(const std::string& text) {
  return const_cast<char*>(text.c_str());
}

Plan plan_for(const Command& command) {
  Plan plan;
  plan.candidates = candidates_for(command);
  plan.arguments.push_back(as_word(command.program));
  for (const std::string& argument : command.arguments) plan.arguments.push_back(as_word(argument));
  plan.arguments.push_back(nullptr);
  if (command.environment) {
    for (const std::string& entry : *command.environment)
      plan.environment.push_back(as_word(entry));
  } else {
    for (char** entry = environ; entry && *entry; ++entry) plan.environment.push_back(*entry);
  }
  plan.environment.push_back(nullptr);
  if (!command.root.empty() && command.root != "/") plan.root = command.root.c_str();
  plan.own_group = command.own_group;
  plan.parent = ::getpid();
  return plan;
}

// --- In the child: system calls only, until exec. ---

void restore_signals() {
  struct sigaction as_new{};
  as_new.sa_handler = SIG_DFL;
  for (int number = 1; number < _NSIG; ++number) ::sigaction(number, &as_new, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

int exec_first(const Plan& plan) {
  int reason = ENOENT;
  for (const std::string& candidate : plan.candidates) {
    ::execve(candidate.c_str(), plan.arguments.data(), plan.environment.data());
    // A later directory of PATH may have it; a file that may not be run is remembered.
    if (errno != ENOENT && errno != ENOTDIR) reason = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  return reason;
}

Trouble become(const Plan& plan) {
  if (plan.own_group && ::setpgid(0, 0) != 0) return {Stage::group, errno};
  // No child outlives us. The second check covers a parent that died just before the first.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return {Stage::death_signal, errno};
  if (::getppid() != plan.parent) return {Stage::death_signal, ESRCH};
  for (int target = 0; target < 3; ++target) {
    int source = plan.streams[static_cast<std::size_t>(target)];
    if (source >= 0 && ::dup2(source, target) < 0) return {Stage::streams, errno};
  }
  // Nothing of ours leaks into the program, whoever opened it. Older kernels lack the call.
  ::syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
  if (plan.root && (::chroot(plan.root) != 0 || ::chdir("/") != 0)) return {Stage::root, errno};
  restore_signals();
  return {Stage::exec, exec_first(plan)};
}

int child_main(void* argument) {
  const Plan& plan = *static_cast<const Plan*>(argument);
  Trouble trouble = become(plan);
  [[maybe_unused]] ssize_t ignored = ::write(plan.trouble, &trouble, sizeof trouble);
  return 127;
}

// --- In the parent. ---

struct Born {
  pid_t pid = -1;
  Fd pidfd;
};

// Like vfork: the child runs on a stack of its own in our memory while this thread waits until it
// has become the program. Unlike fork, that needs no atfork handlers and no copy of the page
// tables.
Result<Born> clone_child(Plan& plan) {
  constexpr std::size_t stack_size = 64u << 10;
  auto stack = std::make_unique<std::byte[]>(stack_size);
  sigset_t all, before;
  ::sigfillset(&all);
  // A handler of ours must not run in the child, on our memory.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  pid_t pid = ::clone(child_main, stack.get() + stack_size,
                      CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  int reason = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return errno_failure("clone", reason);
  return Born{pid, Fd(pidfd)};
}

void reap(const Fd& pidfd) {
  siginfo_t ignored{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &ignored, WEXITED) != 0 &&
         errno == EINTR) {
  }
}

// Above the standard streams, so that dup2 in the child never meets its own target.
Result<Fd> raised(int number) {
  Fd copy(::fcntl(number, F_DUPFD_CLOEXEC, 3));
  if (!copy) return errno_failure("fcntl");
  return copy;
}

Result<Born> launch(const Command& command, Streams streams) {
  Plan plan = plan_for(command);
  Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) return errno_failure("open /dev/null");
  std::array<Fd, 3> held;
  std::array<int, 3> wanted{nothing.get(), streams.out, streams.err};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 0) continue;
    TRY(held[i], raised(wanted[i]));
    plan.streams[i] = held[i].get();
  }
  TRY(Pipe pipe, make_pipe());
  TRY(Fd trouble, raised(pipe.write.get()));
  pipe.write.reset();
  plan.trouble = trouble.get();

  TRY(Born born, clone_child(plan));
  Trouble told{};
  ssize_t size = ::read(pipe.read.get(), &told, sizeof told);
  if (size != sizeof told) return born;  // nothing told: exec closed the other end
  reap(born.pidfd);
  return errno_failure(stage_names[static_cast<std::size_t>(told.stage)], told.reason);
}

}  // namespace

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_failure("pipe2");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  if (::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK) != 0) return errno_failure("fcntl");
  return pipe;
}

Result<Child> start_with(const Command& command, const asio::any_io_executor& executor,
                         Streams streams) {
  Result<Born> born = launch(command, streams);
  if (!born) return std::move(born).failure().during("start " + command.program);
  return Child(born->pid, std::move(born->pidfd), executor, command.own_group);
}

}  // namespace nvdra
