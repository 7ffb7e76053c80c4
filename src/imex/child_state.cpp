#include "imex/child_state.hpp"

#include "imex/host_state.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::imex {
namespace {

constexpr Duration at_least = 20ms;      // between two questions, whatever the log says
constexpr Duration at_least_ready = 1s;  // the same while READY
constexpr Duration while_ready = 10s;    // the readiness probe's period
constexpr Duration longest_not_ready = 1s;

struct AnswerOf {
  Answer operator()(const Ready&) const { return {.ready = true, .word = "READY"}; }
  Answer operator()(const OtherWord& state) const {
    if (state.word.empty()) return {.trouble = "nvidia-imex-ctl printed nothing"};
    return {.word = excerpt(state.word)};
  }
  Answer operator()(const ToolFailed& state) const {
    return {.trouble = fmt::format("nvidia-imex-ctl failed ({}){}", state.how,
                                   state.output.empty() ? "" : ": " + state.output)};
  }
  // judge() knows no others.
  template <class Other>
  Answer operator()(const Other&) const {
    return {.trouble = "nvidia-imex-ctl gave no answer"};
  }
};

}  // namespace

Async<Answer> ask(const Question& question, Time& time) {
  const Limits limits{.time = question.limit, .output = 16u << 10};
  const Result<Output> output = co_await nvdra::run(question.command, time, limits);
  if (output) co_return std::visit(AnswerOf{}, judge(*output));
  if (output.error().code == boost::system::errc::timed_out)
    co_return Answer{.trouble = fmt::format("nvidia-imex-ctl gave no answer within {:g} s",
                                            std::chrono::duration<double>(question.limit).count())};
  co_return Answer{.trouble = "nvidia-imex-ctl cannot be run: " + output.error().text()};
}

Duration next_question(bool ready, Duration unchanged) {
  if (ready) return while_ready;
  return std::clamp(unchanged / 16, at_least, longest_not_ready);
}

ChildState::ChildState(asio::any_io_executor executor, Time& time, const Supervisor& supervisor,
                       Question question, std::function<void()> changed)
    : time_(time),
      supervisor_(supervisor),
      question_(std::move(question)),
      changed_(std::move(changed)),
      stirred_(std::move(executor)) {}

const Answer* ChildState::answer() const {
  if (!answer_ || !supervisor_.up() || answer_->about != supervisor_.pid()) return nullptr;
  return &*answer_;
}

Async<Result<void>> ChildState::run() {
  for (;;) {
    const auto seen = stirred_.count();
    if (!supervisor_.up()) {
      learn(std::nullopt);
      co_await stirred_.wait(seen);
      continue;
    }
    const pid_t pid = supervisor_.pid();
    ++questions_;
    Answer answer = co_await ask(question_, time_);
    if (!supervisor_.up() || supervisor_.pid() != pid) continue;
    answer.about = pid;
    learn(std::move(answer));
    co_await pause(seen);
  }
}

Async<void> ChildState::pause(std::uint64_t seen) {
  const bool ready = answer_ && answer_->ready;
  const Duration whole = next_question(ready, time_.now() - since_);
  const Duration deaf = std::min(whole, ready ? at_least_ready : at_least);
  co_await time_.sleep(deaf);
  if (whole == deaf) co_return;
  co_await stirred_.wait_for(time_, whole - deaf, seen);
}

void ChildState::learn(std::optional<Answer> answer) {
  if (answer == answer_) return;
  answer_ = std::move(answer);
  since_ = time_.now();
  changed_();
}

}  // namespace nvdra::imex
