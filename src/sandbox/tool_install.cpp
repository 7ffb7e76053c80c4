#include "sandbox/tool_install.hpp"

#include "base/try.hpp"

#include <unistd.h>

#include <filesystem>

namespace nvdra::sandbox {

namespace fs = std::filesystem;

Result<void> install_tool(const std::string& directory, const std::string& name) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return fail(failed, "create " + directory);
  const fs::path target = fs::path(directory) / name;
  const fs::path draft = fs::path(directory) / ("." + name);
  fs::remove(draft, failed);
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return fail(failed, "find this program in /proc/self/exe");
  fs::create_hard_link(self, draft, failed);
  // Another file system, or a file that its owner may not link: then a copy.
  if (failed) fs::copy_file("/proc/self/exe", draft, failed);
  if (failed) return fail(failed, "write " + draft.string());
  fs::rename(draft, target, failed);
  if (failed) return fail(failed, "write " + target.string());
  return ok();
}

Result<void> install_tools(const std::string& directory) {
  for (const char* name : {"nvidia-imex", "nvidia-imex-ctl", "nvidia-smi"}) {
    TRY_VOID(install_tool(directory, name));
  }
  return ok();
}

}  // namespace nvdra::sandbox
