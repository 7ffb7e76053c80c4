#include "roles/common/main_loop.hpp"

#include "base/log.hpp"
#include "base/stack_dump.hpp"
#include "base/task_group.hpp"
#include "roles/common/command_line.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>

namespace nvdra::roles {
namespace {

int exit_status(const std::exception_ptr& thrown, const Result<void>& result) {
  if (is_cancellation(thrown)) return 0;
  if (thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& bug) {
      return report_error(std::string("internal error: ") + bug.what(), exit_failed);
    }
  }
  return result ? 0 : report_error(result.error().text(), exit_failed);
}

}  // namespace

int run_main_loop(std::function<Async<Result<void>>(World world)> role, std::string marker) {
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  asio::io_context loop(1);
  RealTime time;
  StackDump dump(loop.get_executor(), std::move(marker));

  asio::cancellation_signal stop;
  asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code failed, int number) {
    if (failed) return;
    LOG_INFO(0, "Stopping", {{"signal", number}});
    signals.clear();
    stop.emit(asio::cancellation_type::terminal);
  });

  int status = exit_failed;
  asio::co_spawn(loop, role(World{loop, time}),
                 asio::bind_cancellation_slot(stop.slot(),
                                              [&](std::exception_ptr thrown, Result<void> result) {
                                                status = exit_status(thrown, result);
                                                signals.cancel();
                                                dump.stop();
                                              }));
  loop.run();
  if (status == 0) LOG_INFO(0, log::Plain{"shutdown"});
  return status;
}

}  // namespace nvdra::roles
