// nvidia-imex: `nvidia-imex [-c FILE] [--nogpu] [--version] [--help]`.
//
// Reads its files once, at start: configuration, nodes file. Its life, as `nvidia-imex-ctl -q`
// tells it: INITIALIZING, [WAITING_FOR_PEERS,] INIT_GPU, READY; SHUTTING_DOWN after SIGTERM, SIGINT
// or SIGQUIT, when it tells its peers and ends with 0. It ends with 1 when a file is bad, when no
// line of the nodes file is this node, when a port is taken, or when the driver has another
// version. READY does not depend on peers (but for IMEX_WAIT_FOR_QUORUM=FULL).
//
// Peers: one TCP connection to each other member, made again 500 ms to 3 s after it was lost, the
// name resolved through /etc/hosts at each try. A peer with another nodes file (!M!) or version
// (!V!) is left alone until restart. SIGUSR1 makes all connections anew at once, at most every 5 s;
// the nodes file is not read again.
#pragma once

#include <span>
#include <string>

namespace nvdra::sandbox {

int nvidia_imex(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
