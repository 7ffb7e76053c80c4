// Inside a container of the sandbox: the step between starting a process and being the container's
// command. Run as a program of its own (`nvdra-sandbox container-start FILE` and `container-exec
// PID SPEC`), because it changes its own namespaces.
//
// A container sees a root of its own: the programs and libraries of this machine (read-only where
// the kernel allows it; files can be mounted among them), and private /tmp, /run, /var and /dev.
// Device nodes that its claims inject are made with their numbers; where the process may not do
// that (an ordinary user), /dev/null stands in for them, which is a character device as well. It
// sees its own processes only, and its pod's network if the pod has one. Users are those of the
// sandbox.
#pragma once

#include "base/result.hpp"
#include "cdi/spec.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

struct ContainerSpec {
  std::vector<std::string> command;      // program and arguments
  std::vector<std::string> environment;  // "K=V"
  std::string directory = "/";           // working directory
  std::string host_name = {};
  std::string scratch = {};  // an empty directory of the container's own
  std::string network = {};  // file of the pod's network namespace; "" = the sandbox's own
  cdi::ContainerEdits edits = {};
};

// The first line that a container's process prints: it has become its command, inside its own root.
inline constexpr std::string_view container_started = "\x01 the container has started";

std::string spec_text(const ContainerSpec& spec);
Result<ContainerSpec> container_spec(std::string_view text);

// Both end in exec and return only an exit status of failure: 125 the container could not be made,
// 126 the command cannot be run, 127 there is no such command. The reason is on stderr.
int container_start(std::span<const std::string> arguments);
int container_exec(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
