// Refresher: tells a running nvidia-imex that names have new addresses (SIGUSR1).
//   * The tool honours one such signal in five seconds and drops the rest (imex-facts.md 1), so
//     changes are collected: one signal at once, one more at the end of the window if something
//     changed meanwhile. None is lost.
//   * A process that has not installed its handler yet would be killed by the signal, and so would
//     a release before 580, which has none. It is sent only once the kernel says that the process
//     handles it. Until then nothing is lost: names are asked when a connection is made.
#pragma once

#include "base/event.hpp"
#include "imex/supervisor.hpp"

#include <string_view>

namespace nvdra::imex {

constexpr Duration refresh_window = 5s;

// When the next signal may be sent to a child that got its last one at `last`.
Instant refresh_due(std::optional<Instant> last, Instant now);

// From the text of /proc/PID/status: signal `number` does not end the process. A signal that is
// only blocked does not count: a process that forks blocks them all for a moment.
bool survives(std::string_view proc_status, int number);

class Refresher {
public:
  // Asks whether the process with this number survives the signal; tests replace it.
  using Survives = std::function<bool(pid_t pid)>;

  Refresher(asio::any_io_executor executor, Time& time, Supervisor& supervisor,
            Survives survives = survives_now);

  // Something changed. Without a running child this is nothing: the next one asks anew.
  void want();
  std::uint64_t sent() const { return sent_; }

  // Until cancelled.
  Async<Result<void>> run();

  static bool survives_now(pid_t pid);

private:
  Time& time_;
  Supervisor& supervisor_;
  Survives survives_;
  Event wanted_;
  pid_t last_pid_ = -1;
  std::optional<Instant> last_;
  std::uint64_t sent_ = 0;
};

}  // namespace nvdra::imex
