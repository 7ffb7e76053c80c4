#include "roles/controller/config.hpp"

#include "base/common_flags.hpp"
#include "base/ids.hpp"
#include "base/try.hpp"
#include "roles/common/command_line.hpp"
#include "roles/common/imex_overrides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::roles::controller {
namespace {

using K = FlagKind;

// clang-format off
constexpr std::array own_flags{
  Flag{"pod-name", "POD_NAME", K::text, "", "name of this pod; prefix of the leader's identity", true},
  Flag{"namespace", "NAMESPACE", K::text, "default", "namespace of the driver: daemons and cliques live there"},
  Flag{"image-name", "IMAGE_NAME", K::text, "", "image of the per-domain daemons", true},
  Flag{"cd-daemon-image-pull-secret-names", "CD_DAEMON_IMAGE_PULL_SECRET_NAMES", K::text, "", "pull secrets of the daemons, separated by commas"},
  Flag{"cd-daemon-priority-class-name", "CD_DAEMON_PRIORITY_CLASS_NAME", K::text, "", "priority class of the daemons"},
  Flag{"cd-daemon-resources-json", "CD_DAEMON_RESOURCES_JSON", K::text, "", "requests and limits of the daemons' container, as JSON"},
  Flag{"cd-daemon-roll-out", "CD_DAEMON_ROLL_OUT", K::boolean, "false", "replace running daemons when image or settings change"},
  Flag{"clean-up-other-mode", "CLEAN_UP_OTHER_MODE", K::boolean, "false", "hostManaged: remove daemons and node labels that driverManaged left behind"},
  Flag{"log-verbosity-cd-daemon", "LOG_VERBOSITY_CD_DAEMON", K::integer, "", "verbosity of the daemons", true},
  Flag{"max-nodes-per-imex-domain", "MAX_NODES_PER_IMEX_DOMAIN", K::integer, "18", "slots of one IMEX domain"},
  Flag{"imex-mode", "IMEX_MODE", K::text, "driverManaged", "driverManaged or hostManaged"},
  Flag{"imex-isolation", "IMEX_ISOLATION", K::text, "domain", "domain"},
  Flag{"imex-config-overrides", "IMEX_CONFIG_OVERRIDES", K::text, "", "KEY=VALUE,… for the generated IMEX configuration"},
  Flag{"http-endpoint", "HTTP_ENDPOINT", K::text, "", "listen address of health, readiness and metrics, for instance :8080"},
  Flag{"metrics-path", "METRICS_PATH", K::text, "/metrics", "path of the metrics; empty = off"},
  Flag{"pprof-path", "PPROF_PATH", K::text, "", "accepted for compatibility, without effect"},
  Flag{"additional-namespaces", "ADDITIONAL_NAMESPACES", K::list, "", "further namespaces in which daemons of this driver may live"},
  Flag{"leader-election-enabled", "LEADER_ELECTION_ENABLED", K::boolean, "false", "work only while holding the Lease"},
  Flag{"leader-election-lease-lock-namespace", "LEADER_ELECTION_LEASE_LOCK_NAMESPACE", K::text, "default", "namespace of the Lease"},
  Flag{"leader-election-lease-lock-name", "LEADER_ELECTION_LEASE_LOCK_NAME", K::text, "nvidia-compute-domain-controller", "name of the Lease"},
  Flag{"leader-election-lease-duration", "LEADER_ELECTION_LEASE_DURATION", K::duration, "15s", "how long a silent leader stays leader"},
  Flag{"leader-election-renew-deadline", "LEADER_ELECTION_RENEW_DEADLINE", K::duration, "10s", "how long a leader tries to renew"},
  Flag{"leader-election-retry-period", "LEADER_ELECTION_RETRY_PERIOD", K::duration, "2s", "pause between tries"},
};
// clang-format on

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    std::size_t end = text.find_first_of(", \t");
    if (end != 0) names.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return names;
}

Result<std::vector<std::string>> all_namespaces(const Args& args) {
  std::vector<std::string> names{args.text("namespace")};
  for (std::string& name : args.list("additional-namespaces"))
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  for (const std::string& name : names)
    if (!is_dns_subdomain(name) || name.find('.') != std::string::npos)
      return refuse(fmt::format(
          "\"{}\" (--namespace, --additional-namespaces) is not a legal namespace name", name));
  return names;
}

// A variable that is set but empty counts as given.
Result<void> need(const std::string& value, std::string_view flag, std::string_view what) {
  if (!value.empty()) return ok();
  return refuse(fmt::format("{} is empty: give it {}", flag, what));
}

Result<void> check_numbers(const Config& config) {
  if (config.max_nodes < 1 || config.max_nodes > 9999)
    return refuse(
        fmt::format("--max-nodes-per-imex-domain (MAX_NODES_PER_IMEX_DOMAIN) is {}: use a number "
                    "from 1 to 9999",
                    config.max_nodes));
  if (config.daemon_verbosity < 0)
    return refuse("--log-verbosity-cd-daemon (LOG_VERBOSITY_CD_DAEMON) may not be negative");
  return ok();
}

}  // namespace

std::span<const Flag> flags() {
  static const std::vector<Flag> all = with_common_flags(own_flags);
  return all;
}

Result<Config> read_config(const Args& args, const Environment& environment) {
  Config config;
  config.pod_name = args.text("pod-name");
  TRY_VOID(need(config.pod_name, "--pod-name (POD_NAME)", "the name of the controller's pod"));
  config.driver_namespace = args.text("namespace");
  TRY(config.namespaces, all_namespaces(args));
  config.image = args.text("image-name");
  TRY_VOID(need(config.image, "--image-name (IMAGE_NAME)", "the image of the per-domain daemons"));
  config.pull_secrets = split_names(args.text("cd-daemon-image-pull-secret-names"));
  config.daemon_verbosity = args.integer("log-verbosity-cd-daemon");
  config.max_nodes = args.integer("max-nodes-per-imex-domain");
  config.daemon_priority_class = args.text("cd-daemon-priority-class-name");
  TRY(config.daemon_resources, parse_daemon_resources(args.text("cd-daemon-resources-json")));
  TRY(config.imex_overrides, parse_imex_overrides(args.text("imex-config-overrides")));

  config.roll_out_daemons = args.boolean("cd-daemon-roll-out");
  config.clean_up_other_mode = args.boolean("clean-up-other-mode");

  std::string mode = args.text("imex-mode");
  TRY(config.gates, gates_of(args, environment));
  force_gates(mode, config.gates);
  TRY_VOID(config.gates.check());
  TRY(config.mode, imex_mode(mode, args.text("imex-isolation"), config.gates));

  config.http_endpoint = args.text("http-endpoint");
  TRY(config.metrics_path, metrics_path_of(args));
  config.kubeconfig = args.text("kubeconfig");
  config.election = args.boolean("leader-election-enabled");
  config.lease_namespace = args.text("leader-election-lease-lock-namespace");
  config.lease_name = args.text("leader-election-lease-lock-name");
  config.lease_duration = args.duration("leader-election-lease-duration");
  config.renew_deadline = args.duration("leader-election-renew-deadline");
  config.retry_period = args.duration("leader-election-retry-period");
  TRY_VOID(check_numbers(config));
  return config;
}

Settings settings_of(const Config& config, std::string resource_version) {
  Settings settings;
  settings.mode = config.mode;
  settings.resource_version = std::move(resource_version);
  settings.daemons = {.space = config.driver_namespace,
                      .image = config.image,
                      .pull_secrets = config.pull_secrets,
                      .verbosity = config.daemon_verbosity,
                      .max_nodes = config.max_nodes,
                      .overrides = render_imex_overrides(config.imex_overrides),
                      .priority_class = config.daemon_priority_class,
                      .resources = config.daemon_resources,
                      .gates = config.gates.to_text()};
  settings.dns_names = config.gates.enabled("IMEXDaemonsWithDNSNames");
  settings.roll_out = config.roll_out_daemons;
  settings.clean_up_other_mode = config.clean_up_other_mode;
  settings.spaces = config.namespaces;
  return settings;
}

std::string describe(const Config& config) {
  std::string further;
  for (std::size_t i = 1; i < config.namespaces.size(); ++i)
    further += (further.empty() ? "" : " ") + config.namespaces[i];
  return fmt::format(
      "controller manager config: driverName:compute-domain.nvidia.com driverNamespace:{} "
      "additionalNamespaces:[{}] imageName:{} maxNodesPerIMEXDomain:{} imexMode:{} "
      "logVerbosityCDDaemon:{} leaderElection:{}",
      config.driver_namespace, further, config.image, config.max_nodes,
      config.mode == ImexMode::host_managed ? "hostManaged" : "driverManaged",
      config.daemon_verbosity, config.election);
}

}  // namespace nvdra::roles::controller
