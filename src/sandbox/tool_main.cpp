#include "sandbox/tool_main.hpp"

#include "sandbox/tool_ctl.hpp"
#include "sandbox/tool_imex.hpp"
#include "sandbox/tool_smi.hpp"

#include <fmt/format.h>

#include <array>
#include <ctime>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view no_driver =
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running.\n\n";

std::string report_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 64> text{};
  (void)std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &parts);
  return text.data();
}

int run_smi(std::span<const std::string> arguments) {
  const std::string root = own_root();
  Result<NodeFacts> facts = read_facts(root);
  const Result<NodeFaults> faults = read_faults(root);
  if (!facts || !faults) {
    fmt::print(stderr, "{}\n", (facts ? faults.error() : facts.error()).text());
    return 125;
  }
  if (const auto status = play_faults(faults->smi)) return *status;
  if (!faults->driver) {
    fmt::print("{}", no_driver);
    return 9;
  }
  put_fabric_fault(faults->fabric, facts->gpus);
  const ToolAnswer answer = nvidia_smi(*facts, arguments, report_time());
  fmt::print("{}", answer.out);
  fmt::print(stderr, "{}", answer.err);
  return answer.status;
}

struct Tool {
  std::string_view name;
  int (*run)(std::span<const std::string> arguments);
};

constexpr std::array tools = {
    Tool{"nvidia-imex", nvidia_imex},
    Tool{"nvidia-imex-ctl", nvidia_imex_ctl},
    Tool{"nvidia-smi", run_smi},
};

const Tool* find_tool(std::string_view program) {
  for (const Tool& tool : tools)
    if (tool.name == program) return &tool;
  return nullptr;
}

}  // namespace

bool is_tool(std::string_view program) {
  return find_tool(program) != nullptr;
}

int run_tool(std::string_view program, std::span<const std::string> arguments) {
  const Tool* tool = find_tool(program);
  return tool ? tool->run(arguments) : 125;
}

}  // namespace nvdra::sandbox
