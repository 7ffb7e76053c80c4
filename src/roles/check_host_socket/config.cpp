#include "roles/check_host_socket/config.hpp"

#include "base/try.hpp"

#include <fmt/format.h>

#include <array>

namespace nvdra::roles::check_host_socket {
namespace {

// Where the plugin's container has the driver root.
constexpr std::string_view container_root = "/driver-root";

constexpr std::array<Flag, 5> table = {{
    {.name = "socket",
     .environment = "IMEX_HOST_SOCKET_PATH",
     .otherwise = "/etc/nvidia-imex/imex_ctrl.sock",
     .help = "command socket of nvidia-imex, a path within the driver root"},
    {.name = "driver-root",
     .environment = "DRIVER_ROOT_CTR_PATH",
     .help = "driver root as seen from here; by default /driver-root where it exists, else /"},
    {.name = "timeout",
     .kind = FlagKind::duration,
     .otherwise = "5s",
     .help = "limit for one question"},
    {.name = "wait",
     .kind = FlagKind::duration,
     .otherwise = "0s",
     .help = "ask again until the service is ready or this time is up"},
    {.name = "output", .otherwise = "text", .help = "text or json", .alias = "o"},
}};

std::string variable(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// The root's name on the host: as the chart tells the plugin, or else the path itself.
imex::DriverRoot driver_root(std::string here, const Environment& environment) {
  if (here.empty())
    here = imex::exists({.here = std::string(container_root)}) ? container_root : "/";
  std::string host = variable(environment, "NVIDIA_DRIVER_ROOT");
  if (host.empty()) host = here == container_root ? "/" : here;
  return {.here = std::move(here), .host = std::move(host)};
}

Failure not_accepted(std::string_view flag, std::string_view value, std::string_view accepted) {
  return refuse(fmt::format("--{} is \"{}\"; it must be {}", flag, value, accepted));
}

}  // namespace

std::span<const Flag> flags() {
  return table;
}

Result<Config> configure(std::span<const std::string> arguments, const Environment& environment) {
  TRY(const Args args, parse_args(table, arguments, environment));
  Config config;
  config.service.root = driver_root(args.text("driver-root"), environment);
  config.service.socket = args.text("socket");
  config.service.limit = args.duration("timeout");
  config.wait = args.duration("wait");

  if (!config.service.root.here.starts_with('/'))
    return not_accepted("driver-root", config.service.root.here, "an absolute path");
  if (!config.service.socket.starts_with('/') || config.service.socket.ends_with('/'))
    return not_accepted("socket", config.service.socket, "the absolute path of a socket");
  if (config.service.limit <= Duration::zero())
    return not_accepted("timeout", args.values().at("timeout"), "longer than 0s");
  if (config.wait < Duration::zero())
    return not_accepted("wait", args.values().at("wait"), "0s or longer");
  const std::string output = args.text("output");
  if (output != "text" && output != "json") return not_accepted("output", output, "text or json");
  config.format = output == "json" ? Format::json : Format::text;
  return config;
}

}  // namespace nvdra::roles::check_host_socket
