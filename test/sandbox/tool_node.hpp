// A driver root with the simulated tools, for tests: runs them as real processes.
#pragma once

#include "base/process.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"

#include <boost/asio/io_context.hpp>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::sandbox {

// Loopback addresses that belong to this test process alone.
inline std::string own_address(int number) {
  const int pid = ::getpid();
  return fmt::format("127.{}.{}.{}", 1 + (pid >> 8) % 250, pid % 256, number);
}

class ToolNode {
public:
  ToolNode(asio::io_context& loop, Time& time) : loop_(loop), time_(time) {
    std::filesystem::create_directories(root.path("usr/bin"));
    std::filesystem::create_directories(root.path("etc/nvdra-sandbox"));
    for (const char* name : {"nvidia-smi", "nvidia-imex", "nvidia-imex-ctl"})
      put(NVDRA_SANDBOX, root.path(std::string("usr/bin/") + name));
  }

  std::string tool(const std::string& name) const { return root.path("usr/bin/" + name); }
  void facts(std::string_view json) const { root.write("etc/nvdra-sandbox/node.json", json); }
  // Replaced as a whole, so that no tool reads half of it.
  void faults(std::string_view json) const {
    root.write("etc/nvdra-sandbox/.faults", json);
    std::filesystem::rename(root.path("etc/nvdra-sandbox/.faults"),
                            root.path("etc/nvdra-sandbox/faults.json"));
  }

  Output run_tool(const std::string& name, std::vector<std::string> arguments,
                  Duration limit = 10s) {
    Command command{.program = tool(name), .arguments = std::move(arguments)};
    auto output = fake::run(loop_, run(command, time_, {.time = limit}), limit + 5s);
    if (!output) throw std::runtime_error(name + ": " + output.error().text());
    return *output;
  }

  fake::TempDir root;

private:
  static void put(const std::string& from, const std::string& to) {
    std::error_code failed;
    std::filesystem::create_hard_link(from, to, failed);
    if (failed) std::filesystem::copy_file(from, to);
  }

  asio::io_context& loop_;
  Time& time_;
};

}  // namespace nvdra::sandbox
