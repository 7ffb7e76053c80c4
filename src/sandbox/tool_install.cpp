#include "sandbox/tool_install.hpp"

#include "base/try.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace nvdra::sandbox {

namespace fs = std::filesystem;

Result<std::string> own_program() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return fail(failed, "find this program in /proc/self/exe");
  return self.string();
}

Result<void> install_tool(const std::string& directory, const std::string& program,
                          const std::string& name) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return fail(failed, "create " + directory);
  const fs::path target = fs::path(directory) / name;
  const fs::path draft = fs::path(directory) / ("." + name);
  fs::remove(draft, failed);
  fs::create_hard_link(program, draft, failed);
  // Another file system, or a file that its owner may not link: then a copy.
  if (failed) fs::copy_file(program, draft, failed);
  if (failed) return fail(failed, "write " + draft.string());
  fs::rename(draft, target, failed);
  if (failed) return fail(failed, "write " + target.string());
  return ok();
}

Result<void> install_tools(const std::string& directory, const std::string& program) {
  for (const char* name : {"nvidia-imex", "nvidia-imex-ctl", "nvidia-smi"}) {
    TRY_VOID(install_tool(directory, program, name));
  }
  return ok();
}

int run_tools_command(std::span<const std::string> arguments) {
  if (arguments.size() != 1 || arguments[0].starts_with('-')) {
    fmt::print(stderr, "usage: nvdra-sandbox tools DIRECTORY\n");
    return 2;
  }
  const Result<std::string> program = own_program();
  const Result<void> done =
      program ? install_tools(arguments[0], *program) : Result<void>(program.failure());
  if (done) return 0;
  fmt::print(stderr, "nvdra-sandbox tools: {}\n", done.error().text());
  return 1;
}

}  // namespace nvdra::sandbox
