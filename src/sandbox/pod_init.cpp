#include "sandbox/pod_init.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace nvdra::sandbox {
namespace {

constexpr int not_made = 125;

int status_of(int ended) {
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

// Passes signals on to `child` and reaps everything, until `child` has ended.
int attend(pid_t child) {
  sigset_t all;
  ::sigfillset(&all);
  for (;;) {
    int ended = 0;
    for (pid_t one; (one = ::waitpid(-1, &ended, WNOHANG)) > 0;)
      if (one == child) return status_of(ended);
    siginfo_t signal{};
    if (::sigwaitinfo(&all, &signal) > 0 && signal.si_signo != SIGCHLD)
      ::kill(child, signal.si_signo);
  }
}

// Forks with all signals held back in parent and child.
pid_t fork_attended() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (child < 0) std::perror("fork");
  return child;
}

[[noreturn]] void end(const std::function<int()>& become) {
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::_Exit(become());
}

}  // namespace

int run_as_child(const std::function<int()>& become) {
  const pid_t child = fork_attended();
  if (child == 0) end(become);
  return child < 0 ? not_made : attend(child);
}

int run_in_own_processes(const std::function<int()>& become) {
  if (::unshare(CLONE_NEWPID) != 0) {
    std::perror("make a PID namespace");
    return not_made;
  }
  const pid_t init = fork_attended();
  if (init < 0) return not_made;
  if (init > 0) return attend(init);
  // Where a machine hides parts of /proc an ordinary user may not mount another; then the container
  // sees the machine's processes.
  (void)::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  std::_Exit(run_as_child(become));
}

}  // namespace nvdra::sandbox
