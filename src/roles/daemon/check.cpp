#include "roles/daemon/check.hpp"

#include "base/time.hpp"
#include "imex/child_state.hpp"
#include "roles/common/command_line.hpp"
#include "roles/daemon/status_socket.hpp"
#include "roles/daemon/tools.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>

namespace nvdra::roles::daemon {
namespace {

// Below the probe's ten seconds, so that the reason is told.
constexpr Duration tool_limit = 7s;

int say(const std::string& text, int status) {
  std::fprintf(stdout, "%s\n", text.c_str());
  return status;
}

bool nobody_serves(const Error& error) {
  return error.code == boost::system::errc::connection_refused ||
         error.code == boost::system::errc::no_such_file_or_directory;
}

Async<int> ask_tool(const Config& config, Time& time) {
  Result<Command> command = question_command(config);
  if (!command) co_return say(command.error().text(), exit_failed);
  const imex::Answer answer =
      co_await imex::ask({.command = *std::move(command), .limit = tool_limit}, time);
  if (answer.ready) co_return say("READY", 0);
  co_return say(answer.word.empty() ? answer.trouble : "nvidia-imex says " + answer.word,
                exit_failed);
}

Async<int> ask_somebody(const Config& config, Time& time) {
  Result<k8s::HttpReply> reply = co_await ask_status(time, config.status_socket, "/check");
  if (!reply && nobody_serves(reply.error())) {
    const int status = co_await ask_tool(config, time);
    co_return status;
  }
  if (!reply)
    co_return say("the running daemon does not answer: " + reply.error().text(), exit_failed);
  std::fputs(reply->body.c_str(), stdout);
  co_return reply->status == 200 ? 0 : exit_failed;
}

}  // namespace

int check(const Config& config) {
  if (config.clique.empty()) return say("check succeeded (noop, clique ID is empty)", 0);
  asio::io_context loop(1);
  RealTime time;
  int status = exit_failed;
  asio::co_spawn(loop, ask_somebody(config, time), [&](std::exception_ptr thrown, int answer) {
    if (thrown) std::rethrow_exception(thrown);  // a bug is told, and fails the probe
    status = answer;
  });
  loop.run();
  return status;
}

}  // namespace nvdra::roles::daemon
