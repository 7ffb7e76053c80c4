#include "roles/daemon/run.hpp"

#include "base/common_flags.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "k8s/config.hpp"
#include "k8s/http_endpoint.hpp"
#include "k8s/http_transport.hpp"
#include "roles/common/command_line.hpp"
#include "roles/common/main_loop.hpp"
#include "roles/daemon/check.hpp"
#include "roles/daemon/config.hpp"
#include "roles/daemon/daemon.hpp"
#include "roles/daemon/files.hpp"
#include "roles/daemon/tools.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace nvdra::roles::daemon {
namespace {

Result<k8s::HttpEndpoint> make_endpoint(World world, const Config& config, const Daemon& daemon) {
  TRY(k8s::HttpEndpoint endpoint,
      k8s::HttpEndpoint::listen(world.loop.get_executor(), world.time, config.http_endpoint,
                                "--http-endpoint"));
  for (const char* path : {"/healthz", "/readyz", "/metrics"})
    endpoint.on_get(path, [&daemon, path](std::string_view) { return daemon.page(path); });
  return endpoint;
}

// A node without fabric has no nvidia-imex: its pod is labelled, and waits for its end.
Async<Result<void>> idle(World world, const Config& config, k8s::Client& client) {
  LOG_INFO(0, log::Plain{"This node has no fabric (CLIQUE_ID is empty): nothing to do but wait"});
  Herald herald(world.loop.get_executor(), client, world.time, config);
  Result<void> labelled = co_await herald.label();
  (void)labelled;  // it returns with success only
  Event never(world.loop.get_executor());
  co_await never.wait(0);
  co_return ok();
}

Async<Result<void>> serve(World world, const Config& config, k8s::Client& client, Tools tools) {
  Daemon daemon(world, config, client, std::move(tools), real_random());
  if (config.http_endpoint.empty()) {
    Result<void> ended = co_await daemon.run();
    co_return ended;
  }
  CO_TRY(k8s::HttpEndpoint endpoint, make_endpoint(world, config, daemon));
  TaskGroup tasks(world.loop.get_executor());
  tasks.spawn("HTTP endpoint", endpoint.run());
  tasks.spawn("daemon", daemon.run());
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<void>> work(World world, const Config& config) {
  Tools tools;
  if (!config.clique.empty()) {
    CO_TRY(tools.imex, imex_command(config));
    CO_TRY(tools.question, question_command(config));
    CO_TRY(tools.domain, domain_command(config));
    CO_TRY_VOID(write_imex_files(config));
  }
  CO_TRY(k8s::Config api, k8s::load_config(config.kubeconfig));
  CO_TRY(std::unique_ptr<k8s::Transport> transport,
         k8s::make_http_transport(world.loop.get_executor(), world.time, std::move(api)));
  k8s::Client client(*transport, world.time);
  if (config.clique.empty()) {
    Result<void> ended = co_await idle(world, config, client);
    co_return ended;
  }
  Result<void> ended = co_await serve(world, config, client, std::move(tools));
  co_return ended;
}

// Kubernetes shows what stands there as the reason of the container's end.
void leave_message(std::string_view text) {
  const Fd file(::open("/dev/termination-log", O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file) [[maybe_unused]]
    const ssize_t written = ::write(file.get(), text.data(), text.size());
}

Async<Result<void>> work_or_say_why(World world, const Config& config) {
  Result<void> ended = co_await work(world, config);
  if (!ended) leave_message(ended.error().text());
  co_return ended;
}

int run_daemon(const Args& args, const Config& config) {
  Result<void> usable = check_for_run(config);
  if (!usable) {
    leave_message(usable.error().text());
    return report_error(usable.error().text(), exit_failed);
  }
  LOG_INFO(0, log::Plain{startup_dump(args, config.gates)});
  return run_main_loop([&](World world) { return work_or_say_why(world, config); },
                       "main.RunComputeDomainDaemon");
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment) {
  CommandLine line{"nvdra daemon", "compute-domain-daemon",
                   "run: one node's member of one ComputeDomain; check: is the running one ready?",
                   flags(), "[FLAGS] run|check"};
  std::vector<std::string> words;
  std::variant<Args, int> read = read_command_line(line, arguments, environment, &words);
  if (int* status = std::get_if<int>(&read)) return *status;
  const Args& args = std::get<Args>(read);
  const bool checks = words == std::vector<std::string>{"check"};
  if (!checks && words != std::vector<std::string>{"run"})
    return report_error(
        "give one of the commands run and check after the flags: compute-domain-daemon [FLAGS] run",
        exit_usage);
  Result<Config> config = read_config(args, environment);
  if (!config) return report_error(config.error().text(), exit_usage);
  return checks ? check(*config) : run_daemon(args, *config);
}

}  // namespace nvdra::roles::daemon
