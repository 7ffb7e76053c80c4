#include "sandbox/tool_imex.hpp"

#include "base/try.hpp"
#include "sandbox/tool_imex_daemon.hpp"

#include <boost/asio/co_spawn.hpp>

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view usage =
    "Usage: nvidia-imex [-c <config file>] [--nogpu] [--version] [--help]\n";

struct Options {
  std::string config{imex_config_path};
  bool no_gpu = false;
};

// What the daemon binds to when several of its lines are addresses of this machine.
std::vector<std::string> preferred_addresses(const ImexConfig& config) {
  std::vector<std::string> preferred;
  for (const std::string& address : {config.bind_address, config.command_address})
    if (!address.empty()) preferred.push_back(address);
  return preferred;
}

Result<Self> identify(const ImexSetup& setup, ImexLog& log) {
  std::vector<std::string> addresses;
  for (const std::string& node : setup.nodes) {
    if (!is_address(node))
      log.info(fmt::format("Treating node config entry '{}' as a host name.", node));
    addresses.push_back(address_of_host(node, setup.root));
  }
  const auto self = find_self(addresses, preferred_addresses(setup.config), local_addresses());
  if (!self)
    return refuse(
        "No matching network interface found for any IP addresses in the node configuration file");
  const std::string& node = setup.nodes[self->index];
  if (is_address(node))
    log.info(
        fmt::format("Identified this node as ID {}, using bind IP of '{}', and network "
                    "interface of eth0",
                    self->index, self->address));
  else
    log.info(fmt::format("Identified this node as ID {}, using bind address of '{}'", self->index,
                         node));
  return *self;
}

Result<void> check_driver(const ImexSetup& setup, const ImexFaults& faults, ImexLog& log) {
  log.info(
      "nvidia-imex persistence file /var/run/nvidia-imex/persist.dat does not exist.  Assuming no "
      "previous importers.");
  if (faults.in_use) return refuse("Failed to allocate Imex session: NV_ERR_IN_USE");
  const std::string& driver =
      faults.driver_version.empty() ? setup.facts.driver_version : faults.driver_version;
  if (driver != setup.facts.imex_version)
    return refuse(
        fmt::format("NvGpu Library version {} is not matching with current GPU driver "
                    "version {}",
                    setup.facts.imex_version, driver));
  log.info("NvGpu Library version matched with GPU Driver version");
  return ok();
}

Result<ImexListeners> listen(const ImexSetup& setup) {
  ImexListeners listeners;
  const ImexConfig& config = setup.config;
  Result<Fd> peers = listen_tcp(setup.self.address, config.server_port);
  if (!peers)
    return std::move(peers).failure().during(
        fmt::format("listen on {}:{}", setup.self.address, config.server_port));
  listeners.peers = *std::move(peers);
  if (!config.command_enabled) return listeners;
  if (config.command_port) {
    Result<Fd> port = listen_tcp(config.command_address, *config.command_port);
    if (!port)
      return std::move(port).failure().during(fmt::format(
          "listen for commands on {}:{}", config.command_address, *config.command_port));
    listeners.commands.push_back(*std::move(port));
  }
  if (!config.command_socket.empty()) {
    Result<Fd> socket = listen_unix(config.command_socket);
    if (!socket)
      return std::move(socket).failure().during("listen for commands on " + config.command_socket);
    listeners.commands.push_back(*std::move(socket));
  }
  if (listeners.commands.empty())
    return refuse("IMEX_CMD_ENABLED=1 needs IMEX_CMD_PORT or IMEX_CMD_UNIX_DOMAIN_PATH");
  return listeners;
}

int serve(ImexSetup setup, ImexListeners listeners, ImexLog& log) {
  asio::io_context loop(1);
  RealTime time;
  ImexDaemon daemon(loop, time, log, std::move(setup));
  int status = 1;
  asio::co_spawn(loop, daemon.run(std::move(listeners)),
                 [&](std::exception_ptr thrown, Result<void> ended) {
                   status = thrown || !ended ? 1 : 0;
                   if (!thrown && !ended) log.write(ImexLevel::critical, ended.error().text());
                 });
  loop.run();
  return status;
}

// Everything that can be refused, before the daemon runs.
Result<ImexListeners> prepare(ImexSetup& setup, const ImexFaults& faults, ImexLog& log) {
  for (const std::string& key : setup.config.unknown_keys)
    log.write(ImexLevel::warning, "Unknown configuration key " + key);
  TRY(setup.nodes, read_nodes(setup.config.nodes_file));
  TRY(setup.self, identify(setup, log));
  TRY_VOID(check_driver(setup, faults, log));
  return listen(setup);
}

int start(const Options& options) {
  ImexSetup setup;
  setup.root = own_root();
  const Result<NodeFacts> facts = read_facts(setup.root);
  const Result<NodeFaults> faults = read_faults(setup.root);
  if (!facts || !faults) {
    fmt::print(stderr, "{}\n", (facts ? faults.error() : facts.error()).text());
    return 125;
  }
  const Result<ImexConfig> config = read_imex_config(options.config);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().text());
    return 1;
  }
  setup.config = *config;
  setup.facts = *facts;
  setup.version = options.no_gpu ? "NO_GPU" : facts->imex_version;
  ImexLog log(setup.config);
  log.begin(setup.config, facts->imex_version, options.no_gpu);
  if (faults->imex.exit_at_start) return *faults->imex.exit_at_start;
  Result<ImexListeners> listeners = prepare(setup, faults->imex, log);
  if (!listeners) {
    log.write(ImexLevel::error, listeners.error().text());
    return 1;
  }
  // A failure from here on is the running daemon's.
  if (setup.config.daemonize && ::daemon(0, 1) != 0) return 1;
  return serve(std::move(setup), *std::move(listeners), log);
}

}  // namespace

int nvidia_imex(std::span<const std::string> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-c" && i + 1 < arguments.size()) {
      options.config = arguments[++i];
    } else if (word == "--nogpu") {
      options.no_gpu = true;
    } else if (word == "--help" || word == "-h") {
      fmt::print("{}", usage);
      return 0;
    } else if (word == "--version" || word == "-v") {
      const Result<NodeFacts> facts = read_facts(own_root());
      fmt::print("IMEX version is: {}\n", facts ? facts->imex_version : facts.error().text());
      return facts ? 0 : 125;
    } else {
      fmt::print(stderr, "nvidia-imex: unknown option {}\n{}", word, usage);
      return 1;
    }
  }
  return start(options);
}

}  // namespace nvdra::sandbox
