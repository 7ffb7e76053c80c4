// Child processes: start one, await its end, bound its time and output.
#pragma once

#include "base/fd.hpp"
#include "base/time.hpp"

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra {

// How a child ended.
struct Exit {
  std::optional<int> code;    // exited with
  std::optional<int> signal;  // or was killed by
  bool success() const { return code == 0; }
  std::string text() const;  // "exit status 1", "killed by signal 9"
};

struct Streams;

struct Command {
  std::string program;  // a path; or a name that is looked up in PATH (inside `root` if set)
  std::vector<std::string> arguments;                        // without argv[0]
  std::optional<std::vector<std::string>> environment = {};  // "K=V"; unset = inherit
  std::string root = {};                                     // chroot there first; "" or "/" = none
  bool own_group = true;  // own process group, so that a time-out ends grandchildren too
};

// Where a program of that name is looked for: in each absolute directory of `path`, in its order.
std::vector<std::string> path_candidates(std::string_view path, std::string_view program);

// A running child. Owned by one coroutine; the destructor kills the group and reaps it. A child
// that two seconds after SIGKILL still hangs in the kernel is given up then, and logged.
// Its stdin is /dev/null. When the thread that started it ends, the kernel kills it.
class Child {
public:
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  // Returns when the child has ended; the child is reaped then. Later calls return the same.
  Async<Result<Exit>> wait();
  // Returns when the child has ended. It is not reaped, so its group can still be signalled.
  Async<Result<void>> ended();
  // To the child itself; success if it has already ended.
  Result<void> signal(int number);
  // To its whole process group.
  Result<void> signal_group(int number);
  // Non-blocking ends of its output pipes, -1 when not piped.
  Fd output;

private:
  friend Result<Child> start_with(const Command&, const asio::any_io_executor&, struct Streams);
  Child(pid_t pid, Fd pidfd, asio::any_io_executor executor, bool own_group);
  Result<Exit> reap();
  void kill_and_reap();
  pid_t pid_ = -1;
  Fd pidfd_;
  asio::any_io_executor executor_;
  bool own_group_ = true;
  std::optional<Exit> exit_;  // set once reaped
};

// Starts `command`. A failure between fork and exec is reported with its stage and errno through a
// close-on-exec pipe: "start nvidia-imex: exec: No such file or directory". With `pipe_output`,
// stdout and stderr arrive together on Child::output; otherwise they are inherited.
Result<Child> start(const Command& command, asio::any_io_executor executor, bool pipe_output);

struct Output {
  Exit exit;
  std::string out;  // stdout
  std::string err;  // stderr
  bool truncated = false;
};

struct Limits {
  Duration time;                  // then TERM, one second later KILL, to the whole group
  std::size_t output = 1u << 20;  // bytes kept of each stream; the rest is read and dropped
};

// Runs a short command to its end, and whatever it left running in its group too. errc::timed_out
// when the limit passed (the group has been killed and reaped); otherwise the exit is in the
// answer, whatever it is.
Async<Result<Output>> run(const Command& command, Time& time, const Limits& limits);

// Calls `line` for every complete line read from `output` until end of file (the last, unfinished
// line too). Lines longer than 64 KiB are cut.
Async<Result<void>> each_line(Fd output, std::function<void(std::string_view)> line);

}  // namespace nvdra
