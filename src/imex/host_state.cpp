#include "imex/host_state.hpp"

#include "imex/text.hpp"

#include <fmt/format.h>

namespace nvdra::imex {
namespace {

std::string last_line(std::string_view text) {
  std::string_view last;
  while (const auto line = next_line(text))
    if (const std::string_view row = trim(*line); !row.empty()) last = row;
  return std::string(last);
}

std::string seconds(Duration length) {
  return fmt::format("{:g}", std::chrono::duration<double>(length).count());
}

// Builds the two halves of the story. The socket's name within the root is what the service's
// configuration holds; its path on the host is what the administrator can look at.
struct Teller {
  const HostService& service;
  std::string path = service.root.host_path(service.socket);

  std::string settings() const {
    return fmt::format(
        "/etc/nvidia-imex/config.cfg has IMEX_CMD_ENABLED=1 and IMEX_CMD_UNIX_DOMAIN_PATH={}",
        service.socket);
  }

  Told operator()(const Ready&) const {
    return {.seen = fmt::format("the nvidia-imex service at {} is READY", path), .check = ""};
  }
  Told operator()(const DriverRootMissing&) const {
    return {.seen = fmt::format("the nvidia-imex service at {} cannot be asked: the driver root {} "
                                "is not a directory{}",
                                path, service.root.host,
                                service.root.here == service.root.host
                                    ? ""
                                    : " (seen here as " + service.root.here + ")"),
            .check =
                "check that the NVIDIA driver is installed there and that nvidiaDriverRoot "
                "names its directory"};
  }
  Told operator()(const ToolMissing& state) const {
    const bool borrowed = state.searched.here != service.root.here;
    return {.seen = fmt::format(
                "the nvidia-imex service at {} cannot be asked: {}{}", path,
                not_found(state.searched, host_tool, binary_directories()),
                borrowed ? ", because " + service.root.host + " has no directory dev" : ""),
            .check =
                "check that nvidia-imex is installed on this node and that nvidiaDriverRoot "
                "names the root of that installation"};
  }
  Told operator()(const NoSocket& state) const {
    switch (state.why) {
      case NoSocket::Why::missing:
        return {
            .seen = fmt::format("the nvidia-imex command socket {} does not exist", path),
            .check = fmt::format("check `systemctl status nvidia-imex` and that {}", settings())};
      case NoSocket::Why::not_a_socket:
        return {
            .seen = fmt::format("{} is not a socket but another kind of file", path),
            .check = fmt::format("remove it, restart nvidia-imex and check that {}", settings())};
      case NoSocket::Why::no_listener:
        return {
            .seen = fmt::format("nobody listens on the nvidia-imex command socket {}", path),
            .check = fmt::format("check `systemctl status nvidia-imex` and that {}", settings())};
    }
    __builtin_unreachable();
  }
  Told operator()(const NoAnswer& state) const {
    return {.seen = fmt::format("the nvidia-imex service at {} gave no answer within {} s", path,
                                seconds(state.limit)),
            .check =
                "check `systemctl status nvidia-imex` and the end of "
                "/var/log/nvidia-imex.log, or restart the service"};
  }
  Told operator()(const OtherWord& state) const {
    const bool waits = state.word.starts_with("WAITING_FOR_");
    return {.seen = fmt::format("the nvidia-imex service at {} {}", path,
                                state.word.empty() ? "answered with nothing instead of READY"
                                                   : fmt::format("is not ready, it answered \"{}\"",
                                                                 excerpt(state.word))),
            .check = waits ? "check that nvidia-imex runs on the other nodes of its nodes file and "
                             "that they can be reached"
                           : "wait for it, or check `systemctl status nvidia-imex` and "
                             "/var/log/nvidia-imex.log"};
  }
  Told operator()(const ToolFailed& state) const {
    return {.seen = fmt::format("the nvidia-imex service at {} cannot be asked: `{} -q --u={}` "
                                "failed ({}){}",
                                path, host_tool, service.socket, state.how,
                                state.output.empty() ? "" : " and printed: " + state.output),
            .check = fmt::format("run it on this node, check `systemctl status nvidia-imex` and "
                                 "that {}",
                                 settings())};
  }
};

template <class... F>
struct Cases : F... {
  using F::operator()...;
};

}  // namespace

HostState judge(const Output& output) {
  if (!output.exit.success())
    return ToolFailed{.how = output.exit.text(), .output = excerpt(output.out + "\n" + output.err)};
  std::string word = last_line(output.out);
  if (word == "READY") return Ready{};
  return OtherWord{.word = std::move(word)};
}

std::string_view name(const HostState& state) {
  return std::visit(
      Cases{[](const Ready&) { return std::string_view("ready"); },
            [](const DriverRootMissing&) { return std::string_view("driver_root_missing"); },
            [](const ToolMissing&) { return std::string_view("tool_missing"); },
            [](const NoSocket&) { return std::string_view("no_socket"); },
            [](const NoAnswer&) { return std::string_view("no_answer"); },
            [](const OtherWord&) { return std::string_view("not_ready"); },
            [](const ToolFailed&) { return std::string_view("tool_failed"); }},
      state);
}

Told tell(const HostState& state, const HostService& service) {
  return std::visit(Teller{service}, state);
}

}  // namespace nvdra::imex
