#include "sandbox/api_command.hpp"

#include "base/args.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "sandbox/api_server.hpp"
#include "sandbox/controllers.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace nvdra::sandbox {
namespace {

constexpr Flag flags[] = {
    {"crds", "", FlagKind::text, "charts/nvdra/crds", "folder of the CRDs to begin with"},
    {"kubeconfig", "", FlagKind::text, "nvdra-sandbox.kubeconfig", "file to write for clients"},
    {"port", "", FlagKind::integer, "0", "port on 127.0.0.1, 0 = any free one"},
    {"resource-versions", "", FlagKind::list, "v1",
     "served versions of resource.k8s.io, preferred first"},
    {"history", "", FlagKind::integer, "4096", "changes per resource that watches can go back"},
    {"help", "", FlagKind::boolean, "false", "list the flags"},
};

Async<Result<void>> serve(ApiServer* server, Controllers* controllers) {
  auto executor = co_await asio::this_coro::executor;
  TaskGroup group(executor);
  group.spawn("API server", server->run());
  group.spawn("controllers", controllers->run());
  Result<void> ended = co_await group.join();
  co_return ended;
}

Result<void> write_kubeconfig(const ApiServer& server, const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  file << server.kubeconfig();
  file.close();
  if (!file) return errno_failure(fmt::format("write the kubeconfig {}", path));
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  return ok();
}

Result<void> run_with(const Args& args) {
  asio::io_context loop(1);
  RealTime time;
  Registry::Options options{.resource_versions = args.list("resource-versions")};
  options.bounds.history = static_cast<std::size_t>(args.integer("history"));
  Registry registry(time, std::move(options));
  TRY_VOID(registry.add_crds(args.text("crds")));
  Controllers controllers(loop.get_executor(), registry);
  TRY(auto server, ApiServer::listen(loop.get_executor(), registry,
                                     {.port = static_cast<std::uint16_t>(args.integer("port"))}));
  TRY_VOID(write_kubeconfig(*server, args.text("kubeconfig")));

  asio::cancellation_signal stop;
  asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code failed, int) {
    if (failed) return;
    signals.clear();  // a second signal kills
    stop.emit(asio::cancellation_type::terminal);
  });
  Result<void> ended = ok();
  asio::co_spawn(loop, serve(server.get(), &controllers),
                 asio::bind_cancellation_slot(stop.slot(),
                                              [&](std::exception_ptr thrown, Result<void> result) {
                                                signals.cancel();
                                                if (thrown && !is_cancellation(thrown))
                                                  std::rethrow_exception(thrown);
                                                ended = std::move(result);
                                              }));
  loop.run();
  return ended;
}

}  // namespace

int run_api(std::span<const std::string> arguments) {
  if (std::ranges::find(arguments, "--help") != arguments.end()) {
    std::fputs(flags_help(flags).c_str(), stdout);
    return 0;
  }
  Result<Args> args = parse_args(flags, arguments, {});
  Result<void> ended = args ? run_with(*args) : Result<void>(std::move(args).failure());
  if (ended) return 0;
  std::fprintf(stderr, "nvdra-sandbox api: %s\n", ended.error().text().c_str());
  return args ? 1 : 2;
}

}  // namespace nvdra::sandbox
