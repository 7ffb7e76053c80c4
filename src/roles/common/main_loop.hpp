// The one loop of a role's process: signals, the role's coroutine, one error line, exit status.
#pragma once

#include "base/time.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <string>

namespace nvdra::roles {

struct World {
  asio::io_context& loop;
  Time& time;
};

// Runs `role` until it ends. SIGINT and SIGTERM cancel it (a second one kills), SIGHUP is ignored,
// SIGUSR2 writes the state of all threads to a file (node-side.md 2.6) that contains `marker`.
// 0: it ended, or was cancelled, in good order; 1: it failed, "Error: …" is on stderr.
int run_main_loop(std::function<Async<Result<void>>(World world)> role, std::string marker);

}  // namespace nvdra::roles
