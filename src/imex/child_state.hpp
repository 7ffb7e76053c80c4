// ChildState: the word that the supervised nvidia-imex answers to `nvidia-imex-ctl -q`.
// It is asked often while it is not READY and something may change any moment, rarely when it is.
// A line of its log is a reason to ask at once.
#pragma once

#include "base/event.hpp"
#include "imex/supervisor.hpp"

namespace nvdra::imex {

// What the tool said, by the rule of host_state.hpp: exit status 0 and READY as the last line.
struct Answer {
  bool ready = false;
  std::string word = {};     // "INIT_GPU"; "" when the tool failed
  std::string trouble = {};  // why there is no word; "" when there is one
  pid_t about = -1;          // the child that ran before and after the question
  bool operator==(const Answer&) const = default;
};

// How one question is asked.
struct Question {
  Command command;      // nvidia-imex-ctl -c FILE -q
  Duration limit = 5s;  // then the tool is killed, with its group
};

Async<Answer> ask(const Question& question, Time& time);

// The pause before the next question, when the answer has been the same for `unchanged`.
Duration next_question(bool ready, Duration unchanged);

class ChildState {
public:
  ChildState(asio::any_io_executor executor, Time& time, const Supervisor& supervisor,
             Question question, std::function<void()> changed);

  // About the child that runs now; nullptr while nothing is known of it.
  const Answer* answer() const;
  std::uint64_t questions() const { return questions_; }

  // Something may have changed: ask soon. Always after a turn of the supervisor.
  void stir() { stirred_.notify(); }

  // Until cancelled.
  Async<Result<void>> run();

private:
  Async<void> pause(std::uint64_t seen);
  void learn(std::optional<Answer> answer);

  Time& time_;
  const Supervisor& supervisor_;
  Question question_;
  std::function<void()> changed_;
  Event stirred_;
  std::optional<Answer> answer_;
  Instant since_{};  // of the answer
  std::uint64_t questions_ = 0;
};

}  // namespace nvdra::imex
