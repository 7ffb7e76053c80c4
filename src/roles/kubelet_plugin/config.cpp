#include "roles/kubelet_plugin/config.hpp"

#include "base/common_flags.hpp"
#include "base/ids.hpp"
#include "base/try.hpp"
#include "imex/capability.hpp"
#include "roles/common/command_line.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace nvdra::roles::kubelet_plugin {
namespace {

using K = FlagKind;

// clang-format off
constexpr std::array own_flags{
  Flag{"node-name", "NODE_NAME", K::text, "", "node that this plugin works for; also the name of its device pool", true},
  Flag{"namespace", "NAMESPACE", K::text, "default", "namespace of the driver"},
  Flag{"additional-namespaces", "ADDITIONAL_NAMESPACES", K::list, "", "more namespaces, separated by commas, in which the driver's daemons run"},
  Flag{"http-endpoint", "HTTP_ENDPOINT", K::text, "", "listen address of health and metrics, for instance :8081"},
  Flag{"metrics-path", "METRICS_PATH", K::text, "/metrics", "path of the metrics; empty = off"},
  Flag{"cdi-root", "CDI_ROOT", K::text, "/etc/cdi", "directory of the CDI files"},
  Flag{"nvidia-driver-root", "NVIDIA_DRIVER_ROOT,HOST_DRIVER_ROOT", K::text, "/", "root of the GPU driver on the host", false, "host_driver-root"},
  Flag{"container-driver-root", "DRIVER_ROOT_CTR_PATH", K::text, "/driver-root", "the same root in this container"},
  Flag{"nvidia-cdi-hook-path", "NVIDIA_CDI_HOOK_PATH", K::text, "", "accepted for compatibility; no hook is needed"},
  Flag{"kubelet-registrar-directory-path", "KUBELET_REGISTRAR_DIRECTORY_PATH", K::text, "/var/lib/kubelet/plugins_registry", "where the kubelet looks for registration sockets"},
  Flag{"kubelet-plugins-directory-path", "KUBELET_PLUGINS_DIRECTORY_PATH", K::text, "/var/lib/kubelet/plugins", "parent of this plugin's directory"},
  Flag{"healthcheck-port", "HEALTHCHECK_PORT", K::integer, "-1", "port of the gRPC health service; 0 = any, negative = off"},
  Flag{"gpu-clique-label-enabled", "GPU_CLIQUE_LABEL_ENABLED", K::boolean, "false", "own the node label nvidia.com/gpu.clique"},
  Flag{"imex-mode", "IMEX_MODE", K::text, "driverManaged", "driverManaged or hostManaged"},
  Flag{"imex-isolation", "IMEX_ISOLATION", K::text, "domain", "domain"},
  Flag{"imex-host-socket-path", "IMEX_HOST_SOCKET_PATH", K::text, "/etc/nvidia-imex/imex_ctrl.sock", "command socket of the host's nvidia-imex, inside the driver root"},
};
// clang-format on

Result<std::vector<std::string>> check_namespaces(std::vector<std::string> spaces) {
  for (const std::string& space : spaces)
    if (!is_dns_subdomain(space))
      return refuse(fmt::format(
          "--additional-namespaces (ADDITIONAL_NAMESPACES): \"{}\" is no namespace's name", space));
  return spaces;
}

Result<void> check_paths(const Config& config) {
  struct Row {
    const std::string& path;
    std::string_view flag;
  };
  for (const Row& row :
       {Row{config.cdi_root, "--cdi-root (CDI_ROOT)"},
        Row{config.driver_root, "--nvidia-driver-root (NVIDIA_DRIVER_ROOT)"},
        Row{config.container_driver_root, "--container-driver-root (DRIVER_ROOT_CTR_PATH)"},
        Row{config.registrar_directory, registrar_flag},
        Row{config.plugins_directory, plugins_flag},
        Row{config.host_socket, "--imex-host-socket-path (IMEX_HOST_SOCKET_PATH)"}}) {
    if (!row.path.starts_with('/'))
      return refuse(fmt::format("{} is \"{}\": use an absolute path", row.flag, row.path));
  }
  return ok();
}

}  // namespace

std::vector<std::string> Config::namespaces() const {
  std::vector<std::string> all{driver_namespace};
  for (const std::string& space : additional_namespaces)
    if (std::ranges::find(all, space) == all.end()) all.push_back(space);
  return all;
}

std::string Config::capability() const {
  std::string path(imex::fabric_management_path);
  return simulated ? container_driver_root + path : path;
}

std::string Config::plugin_directory() const {
  return plugins_directory + "/" + std::string(driver_name);
}

std::span<const Flag> flags() {
  static const std::vector<Flag> all = with_common_flags(own_flags);
  return all;
}

Result<Config> read_config(const Args& args, const Environment& environment) {
  Config config;
  config.node_name = args.text("node-name");
  if (!is_dns_subdomain(config.node_name))
    return refuse(
        fmt::format("--node-name (NODE_NAME) is \"{}\", which is no node name", config.node_name));
  config.driver_namespace = args.text("namespace");
  TRY(config.additional_namespaces, check_namespaces(args.list("additional-namespaces")));
  config.http_endpoint = args.text("http-endpoint");
  TRY(config.metrics_path, metrics_path_of(args));
  config.cdi_root = args.text("cdi-root");
  config.driver_root = args.text("nvidia-driver-root");
  if (config.driver_root.empty()) config.driver_root = "/";
  config.container_driver_root = args.text("container-driver-root");
  config.registrar_directory = args.text("kubelet-registrar-directory-path");
  config.plugins_directory = args.text("kubelet-plugins-directory-path");
  std::string alternative = value_or_empty(environment, "ALT_PROC_DEVICES_PATH");
  config.simulated = !alternative.empty();
  config.proc_devices = config.simulated ? alternative : "/proc/devices";
  config.mask_driver_params = value_or_empty(environment, "MASK_NVIDIA_DRIVER_PARAMS") == "true";
  config.health_port = args.integer("healthcheck-port");
  if (config.health_port > 65535)
    return refuse(fmt::format("--healthcheck-port (HEALTHCHECK_PORT) is {}: use a port up to 65535",
                              config.health_port));
  config.clique_label = args.boolean("gpu-clique-label-enabled");
  config.host_socket = args.text("imex-host-socket-path");
  config.kubeconfig = args.text("kubeconfig");

  std::string mode = args.text("imex-mode");
  TRY(config.gates, gates_of(args, environment));
  force_gates(mode, config.gates);
  TRY_VOID(config.gates.check());
  TRY(config.mode, imex_mode(mode, args.text("imex-isolation"), config.gates));
  TRY_VOID(check_paths(config));
  return config;
}

}  // namespace nvdra::roles::kubelet_plugin
