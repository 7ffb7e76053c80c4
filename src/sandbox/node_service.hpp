// The administrator's side of a simulated node: nvidia-imex.service, and a shell.
#pragma once

#include "base/event.hpp"
#include "base/process.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::sandbox {

// nvidia-imex inside the driver root, as systemd keeps it: started, stopped, and started again one
// second after it failed.
class HostService {
public:
  HostService(asio::any_io_executor executor, Time& time, std::string driver_root);

  // Keeps the service while it is wanted, until cancelled; then it is killed.
  Async<Result<void>> run();

  Result<void> start();  // returns before it is ready
  Async<void> stop();    // returns when it has ended
  bool active() const { return child_.has_value(); }
  void signal(int number);
  std::optional<pid_t> pid() const { return child_ ? std::optional(child_->pid()) : std::nullopt; }

private:
  asio::any_io_executor executor_;
  Time& time_;
  std::string root_;
  std::optional<Child> child_;
  bool wanted_ = false;
  Event changed_;
};

// The processes of this name below `roots`, which may be one themselves, in the order of their ids.
std::vector<pid_t> processes_named(std::string_view name, const std::vector<pid_t>& roots);

// Commands on a node: `systemctl start|stop|restart|is-active nvidia-imex.service`; `pgrep NAME`
// and `pkill [-SIGNAL] NAME` among the node's containers and its service, whose names must match
// exactly; and every program of the driver root, run inside it.
class NodeShell {
public:
  using Processes = std::function<std::vector<pid_t>()>;
  NodeShell(Time& time, HostService& service, std::string driver_root, Processes containers)
      : time_(time),
        service_(service),
        root_(std::move(driver_root)),
        containers_(std::move(containers)) {}

  // The command's output and status; the error says that it could not be run.
  Async<Result<Output>> run(std::vector<std::string> command);

private:
  Async<Output> systemctl(std::vector<std::string> arguments);
  Output pick(const std::vector<std::string>& command);

  Time& time_;
  HostService& service_;
  std::string root_;
  Processes containers_;
};

}  // namespace nvdra::sandbox
