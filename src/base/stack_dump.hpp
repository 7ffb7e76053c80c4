// SIGUSR2: what every thread of this process is doing, written to a file (node-side.md 2.6).
#pragma once

#include "base/async.hpp"

#include <boost/asio/signal_set.hpp>

#include <string>

namespace nvdra {

// Name, state, kernel function and stack of every thread, from /proc/self/task; the text begins
// with `marker`. Pure reading; what cannot be read is left out, and what is beyond 2 MiB is cut.
std::string describe_threads(std::string_view marker);

// From its construction to stop(), every SIGUSR2 overwrites `path` with describe_threads() (mode
// 0666 before the umask). If that fails the text goes to stderr. Runs on the loop, so a loop that
// hangs writes nothing.
class StackDump {
public:
  StackDump(asio::any_io_executor executor, std::string marker,
            std::string path = "/tmp/goroutine-stacks.dump");
  void stop();

private:
  void wait();
  void write() const;

  asio::signal_set signals_;
  std::string marker_;
  std::string path_;
};

}  // namespace nvdra
