// nvdra check-host-socket: is this node's administrator-managed IMEX service ready? The same look
// as that of claim preparation, for people and scripts.
#pragma once

#include "base/args.hpp"

#include <span>
#include <string>

namespace nvdra::roles::check_host_socket {

// Prints the answer on stdout: two lines for people (what was seen, what to check), or with
// `-o json` one object with the keys ready, state, socket, driverRoot, seen, check, waitedSeconds.
// Exit status: 0 ready, 1 not ready, 2 usage, 3 tool or driver root missing, 4 no answer in time,
// 128 + n when ended by signal n. With --wait it asks until the service is ready or the time is up.
int run(std::span<const std::string> arguments, const Environment& environment);

}  // namespace nvdra::roles::check_host_socket
