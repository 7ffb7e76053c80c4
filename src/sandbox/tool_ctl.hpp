// nvidia-imex-ctl: asks the daemon of this node.
//   nvidia-imex-ctl [-c CONFIG | -u SOCKET | --u=SOCKET] <-q | -N | -n | -s> [-j] [-H] [-t MS]
// -q prints one word. Exit status: 0 answered; 1 usage, no daemon, no answer in time; 255 the nodes
// file cannot be read. -N without a daemon shows the members of the nodes file as UNAVAILABLE.
#pragma once

#include <span>
#include <string>

namespace nvdra::sandbox {

int nvidia_imex_ctl(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
