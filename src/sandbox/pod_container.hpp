// One container of a pod: its command as a process, and what it prints.
#pragma once

#include "base/event.hpp"
#include "base/process.hpp"
#include "sandbox/pod_inside.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace nvdra::sandbox {

struct LogLine {
  std::string time;  // RFC 3339
  std::string text;
};

// The last lines of one run of a container.
struct ContainerLog {
  explicit ContainerLog(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::deque<LogLine> lines;
  std::size_t dropped = 0;  // lines that came before those
  bool ended = false;
  Fd file = {};  // a copy of all lines, if there is one
  Event changed;
};

// Where the program with container-start and container-exec is: nvdra-sandbox.
struct ContainerHelper {
  std::string program;
};

class Container {
public:
  Container(asio::any_io_executor executor, Time& time, ContainerHelper helper);

  // Starts the process that becomes the command. Writes the file `scratch`.json; appends what it
  // prints to `log_file` as well. Stopped by
  // signal() or by destruction.
  Result<void> start(const ContainerSpec& spec, const std::string& log_file);
  // Until the command has ended and its output was read. `begun` is called when the command runs
  // in its container; until then the process is not in its own root yet. Without that call the
  // container could not be made, and the log says why.
  Async<Result<Exit>> wait(std::function<void()> begun);
  // To the command; SIGKILL ends all processes of the container.
  void signal(int number);
  // Runs a command in the running container.
  Async<Result<Output>> exec(std::vector<std::string> command, Duration limit);

  bool alive() const { return child_.has_value(); }
  // The process that stands for the container outside of it; its descendants are the container's.
  std::optional<pid_t> pid() const { return child_ ? std::optional(child_->pid()) : std::nullopt; }
  bool running() const { return child_.has_value() && running_; }
  std::shared_ptr<ContainerLog> log() const { return log_; }
  std::shared_ptr<ContainerLog> log_before() const { return before_; }

private:
  asio::any_io_executor executor_;
  Time& time_;
  ContainerHelper helper_;
  ContainerSpec spec_;
  std::optional<Child> child_;
  bool running_ = false;
  std::shared_ptr<ContainerLog> log_;
  std::shared_ptr<ContainerLog> before_;
};

}  // namespace nvdra::sandbox
