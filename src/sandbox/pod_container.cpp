#include "sandbox/pod_container.hpp"

#include "base/files.hpp"
#include "base/try.hpp"

#include <fcntl.h>

#include <csignal>

namespace nvdra::sandbox {
namespace {

constexpr std::size_t kept_lines = 10000;

void add_line(ContainerLog& log, Time& time, std::string_view line) {
  if (log.lines.size() >= kept_lines) {
    log.lines.pop_front();
    ++log.dropped;
  }
  log.lines.push_back({rfc3339_micro(time.wall()), std::string(line)});
  const std::string copy = log.lines.back().time + " " + log.lines.back().text + "\n";
  if (log.file) (void)!::write(log.file.get(), copy.data(), copy.size());  // a full disk loses it
  log.changed.notify();
}

}  // namespace

Container::Container(asio::any_io_executor executor, Time& time, ContainerHelper helper)
    : executor_(std::move(executor)), time_(time), helper_(std::move(helper)) {}

Result<void> Container::start(const ContainerSpec& spec, const std::string& log_file) {
  spec_ = spec;
  // A file, because all channels of a domain do not fit into an argument.
  const std::string description = spec.scratch + ".json";
  TRY_VOID(replace_file(AT_FDCWD, description, spec_text(spec), 0600));
  const Command command{.program = helper_.program, .arguments = {"container-start", description}};
  TRY(Child child, nvdra::start(command, executor_, true));
  child_.emplace(std::move(child));
  running_ = false;
  before_ = std::move(log_);
  log_ = std::make_shared<ContainerLog>(executor_);
  log_->file = Fd(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  return ok();
}

Async<Result<Exit>> Container::wait(std::function<void()> begun) {
  const std::shared_ptr<ContainerLog> log = log_;
  const auto take = [this, log, begun = std::move(begun)](std::string_view line) {
    if (running_ || line != container_started) return add_line(*log, time_, line);
    running_ = true;
    begun();
  };
  Result<void> read = co_await each_line(std::move(child_->output), take);
  (void)read;
  log->ended = true;
  log->changed.notify();
  Result<Exit> ended = co_await child_->wait();
  child_.reset();
  co_return ended;
}

void Container::signal(int number) {
  if (!child_) return;
  const Result<void> sent = child_->signal(number);
  (void)sent;  // it has ended meanwhile
}

Async<Result<Output>> Container::exec(std::vector<std::string> command, Duration limit) {
  if (!running()) co_return refuse("the container is not running");
  ContainerSpec spec{.command = command, .environment = spec_.environment};
  const Command inside{
      .program = helper_.program,
      .arguments = {"container-exec", std::to_string(child_->pid()), spec_text(spec)}};
  Result<Output> output = co_await run(inside, time_, {.time = limit});
  co_return output;
}

}  // namespace nvdra::sandbox
