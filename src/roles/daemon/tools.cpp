#include "roles/daemon/tools.hpp"

#include "imex/driver_root.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nvdra::roles::daemon {
namespace {

bool is_program(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string in_path(std::string_view path, const std::string& name) {
  for (const std::string& candidate : path_candidates(path, name))
    if (is_program(candidate)) return candidate;
  return {};
}

std::vector<std::string> environment_with(const std::string& library_path) {
  Environment environment = process_environment();
  if (!library_path.empty()) environment["LD_LIBRARY_PATH"] = library_path;
  std::vector<std::string> entries;
  entries.reserve(environment.size());
  for (const auto& [name, value] : environment)
    entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

}  // namespace

Result<Command> find_tool(const Config& config, const std::string& name,
                          std::vector<std::string> arguments) {
  std::string program = in_path(config.path, name);
  if (program.empty()) {
    const Result<imex::Found> found = imex::find_binary({"/", "/"}, name);
    if (!found)
      return refuse(fmt::format(
          "{} is not in this container (looked for in PATH and in /usr/bin, /opt/bin and the "
          "like): "
          "the kubelet plugin mounts it from the node's driver root, so check that the nvidia-imex "
          "package of the driver is installed on node {} and that nvidiaDriverRoot is right",
          name, config.node.value));
    program = found->inside;
  }
  return Command{.program = std::move(program),
                 .arguments = std::move(arguments),
                 .environment = environment_with(config.library_path)};
}

Result<Command> imex_command(const Config& config) {
  return find_tool(config, "nvidia-imex", {"-c", config.config_file()});
}

Result<Command> question_command(const Config& config) {
  return find_tool(config, "nvidia-imex-ctl", {"-c", config.config_file(), "-q"});
}

Result<Command> domain_command(const Config& config) {
  return find_tool(config, "nvidia-imex-ctl", {"-c", config.config_file(), "-N", "-j"});
}

}  // namespace nvdra::roles::daemon
