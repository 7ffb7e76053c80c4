// Running a child to its end, and reading what it prints: run() and each_line() of
// base/process.hpp.
#include "base/event.hpp"
#include "base/process_start.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "base/within.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

#include <array>
#include <csignal>

namespace nvdra {
namespace {

using Stream = asio::posix::stream_descriptor;

constexpr Duration grace = 1s;  // between TERM and KILL, and for pipes to reach their end

// One run of one command.
struct Running {
  Running(Child started, asio::any_io_executor executor, Fd out_end, Fd err_end)
      : child(std::move(started)),
        out(executor, out_end.release()),
        err(executor, err_end.release()),
        closed(executor) {}

  Child child;
  Stream out;
  Stream err;
  Event closed;  // notified for each stream that has reached its end
  int open = 2;
  Output output;
  bool ended = false;
  bool timed_out = false;
};

// Keeps the first `limit` bytes and reads the rest too, so that the child never blocks.
Async<Result<void>> collect(Running* run, Stream* stream, std::string* into, std::size_t limit) {
  std::array<char, 16u << 10> chunk;
  for (;;) {
    auto [failed, size] =
        co_await stream->async_read_some(asio::buffer(chunk), asio::as_tuple(asio::use_awaitable));
    // End of file, or closed because nobody waits for the end any more.
    if (failed) break;
    std::size_t kept = std::min(size, limit - into->size());
    into->append(chunk.data(), kept);
    if (kept < size) run->output.truncated = true;
  }
  --run->open;
  run->closed.notify();
  co_return ok();
}

Async<Result<void>> both_closed(Running* run) {
  while (run->open > 0) {
    auto seen = run->closed.count();
    auto now = co_await run->closed.wait(seen);
    (void)now;
  }
  co_return ok();
}

// TERM, and after the grace period KILL, to the whole group; it is not reaped yet.
Async<Result<void>> end_group(Running* run, Time* time) {
  CO_TRY_VOID(run->child.signal_group(SIGTERM));
  Result<void> yielded = co_await within(*time, grace, run->child.ended());
  (void)yielded;
  CO_TRY_VOID(run->child.signal_group(SIGKILL));
  Result<void> killed = co_await within(*time, grace, run->child.ended());
  co_return killed;
}

// Waits for the child within the limit, ends its group either way, then lets the streams end.
Async<Result<void>> supervise(Running* run, Time* time, Duration limit) {
  Result<void> ended = co_await within(*time, limit, run->child.ended());
  if (!ended) {
    if (ended.error().code != boost::system::errc::timed_out) co_return ended;
    run->timed_out = true;
    Result<void> killed = co_await end_group(run, time);
    if (!killed) co_return killed;
  }
  // Whatever the child has left behind; its number is ours until it is reaped.
  CO_TRY_VOID(run->child.signal_group(SIGKILL));
  auto exit = co_await run->child.wait();
  CO_TRY(run->output.exit, std::move(exit));
  run->ended = true;

  Result<void> drained = co_await within(*time, grace, both_closed(run));
  if (!drained) {
    // Something that left the group still holds the pipes.
    run->output.truncated = true;
    run->out.cancel();
    run->err.cancel();
  }
  co_return ok();
}

constexpr std::size_t longest_line = 64u << 10;

// Bytes in, lines out.
class Lines {
public:
  explicit Lines(std::function<void(std::string_view)> line) : line_(std::move(line)) {}

  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t newline = bytes.find('\n');
      std::string_view part = bytes.substr(0, newline);
      pending_.append(part.substr(0, longest_line - pending_.size()));
      if (newline == std::string_view::npos) {
        unfinished_ = true;
        return;
      }
      give();
      bytes.remove_prefix(newline + 1);
    }
  }
  void finish() {
    if (unfinished_) give();
  }

private:
  void give() {
    line_(pending_);
    pending_.clear();
    unfinished_ = false;
  }
  std::function<void(std::string_view)> line_;
  std::string pending_;
  bool unfinished_ = false;
};

}  // namespace

Async<Result<Output>> run(const Command& command, Time& time, const Limits& limits) {
  auto executor = co_await asio::this_coro::executor;
  CO_TRY(Pipe out, make_pipe());
  CO_TRY(Pipe err, make_pipe());
  CO_TRY(Child child, start_with(command, executor, {out.write.get(), err.write.get()}));
  out.write.reset();
  err.write.reset();
  Running running(std::move(child), executor, std::move(out.read), std::move(err.read));

  TaskGroup group(executor);
  group.spawn("stdout", collect(&running, &running.out, &running.output.out, limits.output));
  group.spawn("stderr", collect(&running, &running.err, &running.output.err, limits.output));
  group.spawn("run " + command.program, supervise(&running, &time, limits.time));
  Result<void> joined = co_await group.join();
  if (running.timed_out)
    co_return fail(make_error_code(boost::system::errc::timed_out),
                   fmt::format("run {}: no end within {:.1f} s", command.program,
                               std::chrono::duration<double>(limits.time).count()));
  if (!joined) co_return std::move(joined).failure();
  // Only a cancellation ends the group before the child.
  if (!running.ended) throw boost::system::system_error(asio::error::operation_aborted);
  co_return std::move(running.output);
}

Async<Result<void>> each_line(Fd output, std::function<void(std::string_view)> line) {
  Stream stream(co_await asio::this_coro::executor, output.release());
  Lines lines(std::move(line));
  std::array<char, 4u << 10> chunk;
  for (;;) {
    auto [failed, size] =
        co_await stream.async_read_some(asio::buffer(chunk), asio::as_tuple(asio::use_awaitable));
    if (failed == asio::error::operation_aborted) throw boost::system::system_error(failed);
    if (failed && failed != asio::error::eof) co_return fail(failed, "read the child's output");
    if (failed) break;
    lines.add({chunk.data(), size});
  }
  lines.finish();
  co_return ok();
}

}  // namespace nvdra
