#include "roles/daemon/config.hpp"

#include "base/common_flags.hpp"
#include "base/try.hpp"

#include <boost/asio/ip/address.hpp>

#include <fmt/format.h>

#include <array>
#include <vector>

namespace nvdra::roles::daemon {
namespace {

using K = FlagKind;

constexpr std::int64_t usual_slots = 18;
constexpr std::int64_t most_slots = 9999;  // four digits in a slot's name
constexpr std::size_t longest_socket_name = 107;

// clang-format off
constexpr std::array own_flags{
  Flag{"cliqueid", "CLIQUE_ID", K::text, "", "fabric clique of this node; empty = no fabric"},
  Flag{.name = "compute-domain-uuid", .environment = "COMPUTE_DOMAIN_UUID", .help = "uid of the ComputeDomain", .alias = "cd-uid"},
  Flag{"compute-domain-name", "COMPUTE_DOMAIN_NAME", K::text, "", "its name"},
  Flag{"compute-domain-namespace", "COMPUTE_DOMAIN_NAMESPACE", K::text, "default", "its namespace"},
  Flag{"node-name", "NODE_NAME", K::text, "", "node that this daemon works for"},
  Flag{"pod-ip", "POD_IP", K::text, "", "address of this pod, at which its peers reach it"},
  Flag{"pod-uid", "POD_UID", K::text, "", "uid of this pod"},
  Flag{"pod-name", "POD_NAME", K::text, "", "name of this pod"},
  Flag{"pod-namespace", "POD_NAMESPACE", K::text, "", "namespace of this pod"},
  Flag{"max-nodes-per-imex-domain", "MAX_NODES_PER_IMEX_DOMAIN", K::integer, "0", "slots of one clique, the same for all its daemons; 0 = 18"},
  Flag{"imex-config-overrides", "IMEX_CONFIG_OVERRIDES", K::text, "", "settings for nvidia-imex: KEY=VALUE,…"},
  Flag{"http-endpoint", "HTTP_ENDPOINT", K::text, "", "listen address of health and metrics, for instance :8082; empty = only the status socket"},
  Flag{"imexd-directory", "NVDRA_IMEXD_DIRECTORY", K::text, "/imexd", "directory of nvidia-imex's files, which the kubelet plugin mounts"},
  Flag{"hosts-file", "NVDRA_HOSTS_FILE", K::text, "/etc/hosts", "where names are given addresses"},
  Flag{"status-socket", "NVDRA_STATUS_SOCKET", K::text, "", "name of the abstract socket that check asks; empty = nvdra-daemon/<pod uid>"},
};
// clang-format on

// Our plugin names the directories of the libraries it mounts; the original's names one.
std::string library_path(const Environment& environment) {
  std::string ours = value_or_empty(environment, "NVDRA_IMEX_LIBRARY_PATH");
  return ours.empty() ? value_or_empty(environment, "NVIDIA_CTK_LIBCUDA_DIR") : ours;
}

bool is_address(const std::string& text) {
  boost::system::error_code failed;
  asio::ip::make_address(text, failed);
  return !failed;
}

Result<void> need(const std::string& value, std::string_view flag, std::string_view field) {
  if (!value.empty()) return ok();
  return refuse(fmt::format(
      "{} is not set: the daemon's container takes it from its pod's {} by a field reference", flag,
      field));
}

}  // namespace

std::string Config::domain_text() const {
  return fmt::format("ComputeDomain {}/{}", domain_space, domain_name);
}

std::span<const Flag> flags() {
  static const std::vector<Flag> all = with_common_flags(own_flags);
  return all;
}

Result<Config> read_config(const Args& args, const Environment& environment) {
  Config config;
  config.domain = DomainUid(args.text("compute-domain-uuid"));
  config.domain_name = args.text("compute-domain-name");
  config.domain_space = args.text("compute-domain-namespace");
  config.clique = CliqueId(args.text("cliqueid"));
  config.node = NodeName(args.text("node-name"));
  config.pod_ip = args.text("pod-ip");
  config.pod_uid = args.text("pod-uid");
  config.pod_name = args.text("pod-name");
  config.pod_space = args.text("pod-namespace");
  config.slots = args.integer("max-nodes-per-imex-domain");
  if (config.slots == 0) config.slots = usual_slots;
  TRY(config.overrides, parse_imex_overrides(args.text("imex-config-overrides")));
  TRY(config.gates, gates_of(args, environment));
  config.kubeconfig = args.text("kubeconfig");
  config.http_endpoint = args.text("http-endpoint");
  config.imexd = args.text("imexd-directory");
  config.hosts_file = args.text("hosts-file");
  config.status_socket = args.text("status-socket");
  if (config.status_socket.empty())
    config.status_socket =
        "nvdra-daemon/" + (config.pod_uid.empty() ? config.domain.value : config.pod_uid);
  if (config.status_socket.size() > longest_socket_name)
    return refuse(
        fmt::format("the status socket's name (--status-socket, NVDRA_STATUS_SOCKET; by default of "
                    "--pod-uid, POD_UID) has {} bytes, Linux allows {}: give a shorter one",
                    config.status_socket.size(), longest_socket_name));
  config.library_path = library_path(environment);
  config.path = value_or_empty(environment, "PATH");
  return config;
}

Result<void> check_for_run(const Config& config) {
  if (config.domain.empty())
    return refuse(
        "--compute-domain-uuid (COMPUTE_DOMAIN_UUID) is not set: it comes from the CDI edits of "
        "the "
        "pod's daemon claim, so check that the container runtime has CDI enabled and looks into "
        "the "
        "kubelet plugin's --cdi-root");
  if (!is_uuid(config.domain.value))
    return refuse(
        fmt::format("--compute-domain-uuid (COMPUTE_DOMAIN_UUID) is \"{}\", which is no uid",
                    config.domain.value));
  TRY_VOID(config.gates.check());
  TRY_VOID(need(config.node.value, "--node-name (NODE_NAME)", "spec.nodeName"));
  TRY_VOID(need(config.pod_name, "--pod-name (POD_NAME)", "metadata.name"));
  TRY_VOID(need(config.pod_space, "--pod-namespace (POD_NAMESPACE)", "metadata.namespace"));
  if (config.clique.empty()) return ok();
  TRY_VOID(need(config.pod_uid, "--pod-uid (POD_UID)", "metadata.uid"));
  TRY_VOID(need(config.pod_ip, "--pod-ip (POD_IP)", "status.podIP"));
  if (!is_address(config.pod_ip))
    return refuse(
        fmt::format("--pod-ip (POD_IP) is \"{}\", which is no IP address", config.pod_ip));
  if (config.slots < 1 || config.slots > most_slots)
    return refuse(
        fmt::format("--max-nodes-per-imex-domain (MAX_NODES_PER_IMEX_DOMAIN) is {}: use 1 to {}",
                    config.slots, most_slots));
  if (!config.cliques() && config.domain_name.empty())
    return refuse(
        "--compute-domain-name (COMPUTE_DOMAIN_NAME) is not set: without the gate "
        "ComputeDomainCliques the members stand in the ComputeDomain's status");
  return ok();
}

}  // namespace nvdra::roles::daemon
