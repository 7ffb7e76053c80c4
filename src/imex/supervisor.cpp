#include "imex/supervisor.hpp"

#include <algorithm>
#include <csignal>

namespace nvdra::imex {

Duration crash_pause(int crashes) {
  if (crashes <= 1) return 100ms;
  constexpr Duration longest = 30s;
  constexpr int doublings = 5;
  return std::min(longest, Duration(1s) * (1 << std::min(crashes - 2, doublings)));
}

Step next(const Standing& standing, const Wish& wish, Instant now) {
  const bool outdated = standing.edition != wish.edition;
  switch (standing.phase) {
    case Phase::idle: return {wish.run ? Deed::start : Deed::nothing};
    case Phase::up: return {!wish.run || outdated ? Deed::term : Deed::nothing};
    case Phase::ending: {
      const Instant patience = standing.since + grace_period;
      if (now >= patience) return {Deed::kill};
      return {Deed::nothing, patience};
    }
    case Phase::killed: return {};
    case Phase::waiting:
      if (!wish.run) return {};
      if (outdated || now >= standing.again) return {Deed::start};
      return {Deed::nothing, standing.again};
  }
  __builtin_unreachable();
}

Standing after_start(Standing standing, const Wish& wish, Instant now) {
  if (standing.edition != wish.edition) standing.crashes = 0;
  standing.phase = Phase::up;
  standing.since = now;
  standing.edition = wish.edition;
  return standing;
}

Standing after_signal(Standing standing, Deed deed, Instant now) {
  standing.phase = deed == Deed::kill ? Phase::killed : Phase::ending;
  standing.since = now;
  return standing;
}

Standing after_end(Standing standing, Instant now) {
  const bool crashed = standing.phase == Phase::up;
  if (crashed && now - standing.since >= long_life) standing.crashes = 0;
  standing.since = now;
  if (!crashed) {
    standing.phase = Phase::idle;
    standing.crashes = 0;
    return standing;
  }
  ++standing.crashes;
  standing.phase = Phase::waiting;
  standing.again = now + crash_pause(standing.crashes);
  return standing;
}

Supervisor::Supervisor(asio::any_io_executor executor, Time& time, Settings settings)
    : executor_(executor),
      time_(time),
      settings_(std::move(settings)),
      wake_(executor),
      tasks_(executor) {}

void Supervisor::wish(Wish wish) {
  wish_ = wish;
  wake_.notify();
}

Result<void> Supervisor::signal(int number) {
  if (!child_) return ok();
  return child_->signal(number);
}

Async<Result<void>> Supervisor::run() {
  for (;;) co_await round();
}

Async<void> Supervisor::stop() {
  wish_.run = false;
  while (child_) co_await round();
  tasks_.stop();  // something that left the child's group may still hold its output
  Result<void> ended = co_await tasks_.join();
  (void)ended;
}

// Does what is due, or waits until something may be.
Async<void> Supervisor::round() {
  const auto seen = wake_.count();
  const Step step = next(standing_, wish_, time_.now());
  switch (step.deed) {
    case Deed::start: start(); break;
    case Deed::term:
    case Deed::kill: end_child(step.deed); break;
    case Deed::nothing:
      if (!step.look_again) {
        co_await wake_.wait(seen);
      } else {
        co_await wake_.wait_for(time_, *step.look_again - time_.now(), seen);
      }
  }
}

void Supervisor::start() {
  Result<Child> started = nvdra::start(settings_.command, executor_, true);
  standing_ = after_start(standing_, wish_, time_.now());
  if (!started) {
    standing_ = after_end(standing_, time_.now());
    tell({.what = Turn::What::not_started,
          .why = started.error().text(),
          .pause = crash_pause(standing_.crashes)});
    return;
  }
  child_ = std::make_shared<Child>(*std::move(started));
  tasks_.spawn("output", each_line(std::move(child_->output), settings_.line));
  tasks_.spawn("end", await_end(child_));
  tell({.what = Turn::What::started, .pid = child_->pid()});
}

void Supervisor::end_child(Deed deed) {
  standing_ = after_signal(standing_, deed, time_.now());
  // A child that has just ended takes no signal; its end is on its way to us.
  Result<void> sent = deed == Deed::kill ? child_->signal_group(SIGKILL) : child_->signal(SIGTERM);
  (void)sent.has_value();
  tell({.what = deed == Deed::kill ? Turn::What::killed : Turn::What::told_to_end,
        .pid = child_->pid()});
}

Async<Result<void>> Supervisor::await_end(std::shared_ptr<Child> child) {
  Result<void> over = co_await child->ended();
  if (!over) co_return over;
  Result<void> rest = child->signal_group(SIGKILL);  // what it has left behind
  (void)rest.has_value();
  Result<Exit> exit = co_await child->wait();
  if (!exit) co_return std::move(exit).failure();
  ended(child, *exit);
  co_return ok();
}

void Supervisor::ended(const std::shared_ptr<Child>& child, const Exit& exit) {
  const bool crashed = standing_.phase == Phase::up;
  const Instant now = time_.now();
  const Duration lived = now - standing_.since;
  standing_ = after_end(standing_, now);
  child_.reset();
  tell({.what = crashed ? Turn::What::crashed : Turn::What::ended,
        .pid = child->pid(),
        .exit = exit,
        .lived = lived,
        .pause = crashed ? crash_pause(standing_.crashes) : Duration{}});
  wake_.notify();
}

void Supervisor::tell(Turn turn) {
  if (settings_.story) settings_.story(turn);
}

}  // namespace nvdra::imex
