// A role of nvdra as a process of the sandbox: what a Deployment or DaemonSet would run.
#pragma once

#include "base/process.hpp"

#include <optional>
#include <string>

namespace nvdra::sandbox {

struct RoleCommand {
  std::string name;  // "controller", for messages
  Command command;
  std::string log;  // file that its output is appended to
};

// Keeps the role running until cancelled: one that ends is started again after a second, as a
// kubelet does with containers. At the end it gets SIGTERM and three seconds.
class RoleProcess {
public:
  RoleProcess(asio::any_io_executor executor, Time& time, RoleCommand role);

  Async<Result<void>> run();
  bool running() const { return child_.has_value(); }
  std::optional<pid_t> pid() const { return child_ ? std::optional(child_->pid()) : std::nullopt; }
  int starts() const { return starts_; }
  void signal(int number);
  // Asks the process to end and waits for that; run() does not start it again.
  Async<void> stop();
  const RoleCommand& role() const { return role_; }
  // The end of what it printed, for messages.
  std::string last_lines() const;

private:
  Async<Result<void>> run_once();

  asio::any_io_executor executor_;
  Time& time_;
  RoleCommand role_;
  std::optional<Child> child_;
  int starts_ = 0;
  bool stopping_ = false;
};

}  // namespace nvdra::sandbox
