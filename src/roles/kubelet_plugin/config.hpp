// The plugin's flags and environment (node-side.md 3.1) → one struct.
#pragma once

#include "base/args.hpp"
#include "base/feature_gates.hpp"
#include "roles/common/imex_mode.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

struct Config {
  std::string node_name;
  std::string driver_namespace;
  std::vector<std::string> additional_namespaces;  // where the driver's DaemonSets may be as well
  std::string http_endpoint;                       // "" = off
  std::string metrics_path;                        // "" = off
  std::string cdi_root;
  std::string driver_root;            // on the host
  std::string container_driver_root;  // the same as this process sees it
  std::string registrar_directory;
  std::string plugins_directory;
  std::string proc_devices;  // /proc/devices or ALT_PROC_DEVICES_PATH
  bool simulated = false;    // ALT_PROC_DEVICES_PATH is set
  bool mask_driver_params = false;
  std::int64_t health_port = -1;  // > 0 fixed, 0 any free one, < 0 off
  bool clique_label = false;
  ImexMode mode = ImexMode::driver_managed;
  std::string host_socket;  // inside the driver root
  FeatureGates gates;
  std::string kubeconfig;

  // The driver's own namespace, then the additional ones.
  std::vector<std::string> namespaces() const;
  // The management capability's file; in a simulation below the driver root.
  std::string capability() const;
  // <plugins directory>/compute-domain.nvidia.com
  std::string plugin_directory() const;
};

std::span<const Flag> flags();

// The kubelet's directories in messages: the flag, its variable and the chart's value.
inline constexpr std::string_view registrar_flag =
    "--kubelet-registrar-directory-path (KUBELET_REGISTRAR_DIRECTORY_PATH, chart value "
    "kubeletPlugin.kubeletRegistrarDirectoryPath)";
inline constexpr std::string_view plugins_flag =
    "--kubelet-plugins-directory-path (KUBELET_PLUGINS_DIRECTORY_PATH, chart value "
    "kubeletPlugin.kubeletPluginsDirectoryPath)";

// Every error is one sentence that names the flag and its variable.
Result<Config> read_config(const Args& args, const Environment& environment);

}  // namespace nvdra::roles::kubelet_plugin
