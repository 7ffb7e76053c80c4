// What this node's administrator-managed IMEX service answered, as a value, and how it is told to
// people. Pure (imex-facts.md 3 and 4, node-side.md 10).
#pragma once

#include "base/process.hpp"
#include "base/time.hpp"
#include "imex/driver_root.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace nvdra::imex {

// The node's command socket and how it is asked.
struct HostService {
  DriverRoot root;
  std::string socket = "/etc/nvidia-imex/imex_ctrl.sock";  // within the root
  Duration limit = 5s;                                     // for one question
};

struct Ready {};
struct DriverRootMissing {};
struct ToolMissing {
  DriverRoot searched;  // the root that holds the device nodes
};
struct NoSocket {
  enum class Why { missing, not_a_socket, no_listener } why;
};
struct NoAnswer {
  Duration limit;
};
struct OtherWord {
  std::string word;  // "INITIALIZING", …; "" = nothing was printed
};
struct ToolFailed {
  std::string how;     // "exit status 1", or "cannot be started: …"
  std::string output;  // what it printed, in one line
};

using HostState =
    std::variant<Ready, DriverRootMissing, ToolMissing, NoSocket, NoAnswer, OtherWord, ToolFailed>;

inline bool is_ready(const HostState& state) {
  return std::holds_alternative<Ready>(state);
}

inline constexpr std::string_view host_tool = "nvidia-imex-ctl";

// The rule: exit status 0 and the last line of stdout that is not blank is exactly READY.
HostState judge(const Output& output);

// "ready", "driver_root_missing", "tool_missing", "no_socket", "no_answer", "not_ready",
// "tool_failed": stable, for programs and metrics.
std::string_view name(const HostState& state);

struct Told {
  std::string seen;   // names the socket's path on the host and what was seen
  std::string check;  // what to check or do; "" when ready
  std::string sentence() const { return check.empty() ? seen : seen + "; " + check; }
};
Told tell(const HostState& state, const HostService& service);

}  // namespace nvdra::imex
