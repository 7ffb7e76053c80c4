#include "roles/kubelet_plugin/run.hpp"

#include "base/common_flags.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "k8s/config.hpp"
#include "k8s/http_transport.hpp"
#include "roles/common/command_line.hpp"
#include "roles/kubelet_plugin/driver_params.hpp"
#include "roles/kubelet_plugin/plugin.hpp"

namespace nvdra::roles::kubelet_plugin {
namespace {

void prepare_proc(const Config& config) {
  if (config.simulated) return;
  Result<void> unmounted = unmount_driver_proc();
  if (!unmounted)
    LOG_WARNING("Cannot unmount over /proc/driver/nvidia", {{"err", unmounted.error().text()}});
  if (!config.mask_driver_params) return;
  Result<void> masked = mask_driver_params(config.plugin_directory());
  if (!masked) LOG_WARNING("Cannot mask the driver's parameters", {{"err", masked.error().text()}});
}

Async<Result<void>> serve(World world, const Config& config) {
  CO_TRY(Fd directory, open_plugin_directory(config));
  CO_TRY(cdi::SpecDir cdi, cdi::SpecDir::open(config.cdi_root));
  prepare_proc(config);
  CO_TRY(k8s::Config api, k8s::load_config(config.kubeconfig));
  CO_TRY(std::unique_ptr<k8s::Transport> transport,
         k8s::make_http_transport(world.loop.get_executor(), world.time, std::move(api)));
  k8s::Client client(*transport, world.time);
  LOG_INFO(0, "Kubelet directories",
           {{"plugin", config.plugin_directory()}, {"registrar", config.registrar_directory}});
  Plugin plugin(world, config, client, std::move(cdi), std::move(directory));
  Result<void> ended = co_await plugin.run();
  co_return ended;
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment) {
  CommandLine line{"nvdra kubelet-plugin", "compute-domain-kubelet-plugin",
                   "prepares the claims of ComputeDomains on one node", flags()};
  std::variant<Args, int> read = read_command_line(line, arguments, environment);
  if (int* status = std::get_if<int>(&read)) return *status;
  const Args& args = std::get<Args>(read);
  Result<Config> config = read_config(args, environment);
  if (!config) return report_error(config.error().text(), exit_usage);
  LOG_INFO(0, log::Plain{startup_dump(args, config->gates)});
  return run_main_loop([&](World world) { return serve(world, *config); }, "main.RunPlugin");
}

}  // namespace nvdra::roles::kubelet_plugin
