// argv → a simulated tool (by the name of the program) or a command of the sandbox → exit status.
#include "sandbox/api_command.hpp"
#include "sandbox/demo_commands.hpp"
#include "sandbox/pod_inside.hpp"
#include "sandbox/scale_run.hpp"
#include "sandbox/tool_install.hpp"
#include "sandbox/tool_main.hpp"

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace {

using Arguments = std::span<const std::string>;

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

void print(std::FILE* stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream);
}

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(Arguments arguments);
};

// clang-format off
constexpr Command commands[] = {
  {"api", "serve the Kubernetes API on loopback, with controllers but without nodes", nvdra::sandbox::run_api},
  {"container-exec", "", nvdra::sandbox::container_exec},  // used by the sandbox itself
  {"container-start", "", nvdra::sandbox::container_start},
  {"demo", "play the guide's procedures: demo [driver-managed|host-managed]", nvdra::sandbox::run_demo},
  {"on", "run a command on a node of the sandbox that `up` runs: on NODE COMMAND…", nvdra::sandbox::run_on},
  {"scale", "measure nvdra's controller with many domains on thousands of simulated nodes", nvdra::sandbox::run_scale},
  {"tools", "put nvidia-smi, nvidia-imex and nvidia-imex-ctl, simulated, into a directory", nvdra::sandbox::run_tools_command},
  {"up", "a cluster with simulated GPU nodes for kubectl, until Ctrl-C", nvdra::sandbox::run_up},
};
// clang-format on

std::string usage() {
  std::string text =
      "nvdra-sandbox: a cluster in a box, for demonstrations and tests\n\n"
      "usage: nvdra-sandbox COMMAND\n\n";
  for (const Command& command : commands)
    if (!command.summary.empty())
      text += "  " + std::string(command.name) + "  " + std::string(command.summary) + "\n";
  return text + "\nAs nvidia-smi, nvidia-imex or nvidia-imex-ctl it is the simulated tool.\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view program = argc > 0 ? base_name(argv[0]) : "nvdra-sandbox";
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (nvdra::sandbox::is_tool(program)) return nvdra::sandbox::run_tool(program, arguments);
  const std::string_view word = arguments.empty() ? std::string_view{} : arguments[0];
  for (const Command& command : commands)
    if (command.name == word) return command.run(Arguments(arguments).subspan(1));
  const bool help = word == "--help" || word == "-h" || word == "help";
  print(help ? stdout : stderr, usage());
  return help ? 0 : 2;
}
