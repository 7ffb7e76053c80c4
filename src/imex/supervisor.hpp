// Supervisor: one child process that is wanted to run.
//
// The story. A wish says whether the child shall run, and for which edition of its settings.
//   idle     no child, none wanted. A wish to run starts one.
//   up       it runs. It is told to end (TERM) when it is not wanted any more, or wanted for
//   another
//            edition. When it ends by itself that is a crash.
//   ending   it was told to end. After the grace period it is killed, with its whole group.
//   killed   it was killed, and is waited for.
//   waiting  it crashed, or could not be started, and is started again after a pause: at once for
//            the first time, then after 1 s, doubling to 30 s. A child that has lived for a minute
//            begins a new count. Another edition ends the pause.
// The last wish wins: a child that is ending ends, then the wish is looked at again. Each start is
// for the wish as it is then. "Up" says nothing about "ready" (child_state.hpp).
#pragma once

#include "base/event.hpp"
#include "base/process.hpp"
#include "base/task_group.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace nvdra::imex {

enum class Phase { idle, up, ending, killed, waiting };

struct Wish {
  bool run = false;
  std::uint64_t edition = 0;
};

// Where the child stands. Pure state; the functions below move it.
struct Standing {
  Phase phase = Phase::idle;
  Instant since = {};         // of the phase
  std::uint64_t edition = 0;  // that the last start was for
  int crashes = 0;            // in a row
  Instant again = {};         // waiting: when it is started
};

enum class Deed { nothing, start, term, kill };

struct Step {
  Deed deed = Deed::nothing;
  std::optional<Instant> look_again = {};  // with `nothing`: by itself something is due then
};

constexpr Duration grace_period = 10s;
constexpr Duration long_life = 60s;

// The pause before the start that follows the n-th crash in a row, n >= 1.
Duration crash_pause(int crashes);

Step next(const Standing& standing, const Wish& wish, Instant now);
// After the deed, as far as it is known.
Standing after_start(Standing standing, const Wish& wish, Instant now);
Standing after_signal(Standing standing, Deed deed, Instant now);
// The child has ended, or could not be started.
Standing after_end(Standing standing, Instant now);

// For the supervisor's owner, who logs and counts.
struct Turn {
  enum class What { started, not_started, crashed, ended, told_to_end, killed } what;
  pid_t pid = -1;
  Exit exit = {};        // crashed, ended
  std::string why = {};  // not_started
  Duration lived = {};   // crashed, ended
  Duration pause = {};   // crashed, not_started: until the next start
};

class Supervisor {
public:
  struct Settings {
    Command command;
    std::function<void(std::string_view line)> line;  // of its stdout and stderr
    std::function<void(const Turn& turn)> story;
  };

  Supervisor(asio::any_io_executor executor, Time& time, Settings settings);

  void wish(Wish wish);
  const Wish& wished() const { return wish_; }
  const Standing& standing() const { return standing_; }
  bool up() const { return standing_.phase == Phase::up; }
  // Of the running child; -1 when none runs.
  pid_t pid() const { return child_ ? child_->pid() : -1; }
  Result<void> signal(int number);

  // Until cancelled; the child lives on then.
  Async<Result<void>> run();
  // TERM, grace, KILL. After run() has ended, with cancellation switched off; always before the end
  // of the supervisor's life. Takes the grace period and a few seconds at most.
  Async<void> stop();

private:
  Async<void> round();
  void start();
  void end_child(Deed deed);
  Async<Result<void>> await_end(std::shared_ptr<Child> child);
  void ended(const std::shared_ptr<Child>& child, const Exit& exit);
  void tell(Turn turn);

  asio::any_io_executor executor_;
  Time& time_;
  Settings settings_;
  Wish wish_;
  Standing standing_;
  std::shared_ptr<Child> child_;
  Event wake_;
  TaskGroup tasks_;  // of the child: its output and its end
};

}  // namespace nvdra::imex
