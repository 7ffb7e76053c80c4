#include "sandbox/pod_mirror.hpp"

#include "base/try.hpp"

#include <fmt/format.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace nvdra::sandbox {
namespace {

namespace fs = std::filesystem;

Result<void> make_folders(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return fail(failed, "create " + path);
  return ok();
}

Result<void> bind_folder(const std::string& name, const std::string& target) {
  TRY_VOID(make_folders(target));
  if (::mount(("/" + name).c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return errno_failure("mount " + target);
  // An ordinary user may not change how other people's mounts are.
  if (name != "proc" && name != "sys")
    (void)::mount(nullptr, target.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr);
  return ok();
}

// The first component below `folder` of each target → the targets below that.
std::map<std::string, std::vector<std::string>> branches(const std::string& folder,
                                                         const std::vector<std::string>& targets) {
  std::map<std::string, std::vector<std::string>> found;
  for (const std::string& target : targets) {
    const std::string rest = target.substr(folder.size() + 1);
    const auto slash = rest.find('/');
    std::vector<std::string>& below = found[rest.substr(0, slash)];
    if (slash != std::string::npos) below.push_back(target);
  }
  return found;
}

// `folder` is "/usr/bin": a folder of links, with folders of its own kind on the way to targets.
Result<void> link_all(const std::string& root, const std::string& folder,
                      const std::vector<std::string>& targets) {
  TRY_VOID(make_folders(root + folder));
  const auto ways = branches(folder, targets);
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    if (ways.contains(name)) continue;
    std::error_code ignored;  // an entry that cannot be linked is not seen
    fs::create_symlink(fmt::format("/.host{}/{}", folder, name),
                       fmt::format("{}{}/{}", root, folder, name), ignored);
  }
  for (const auto& [name, below] : ways) {
    if (below.empty()) continue;
    TRY_VOID(link_all(root, fmt::format("{}/{}", folder, name), below));
  }
  return ok();
}

}  // namespace

std::string real_target(const std::string& path) {
  std::error_code failed;
  const fs::path whole(path);
  const fs::path folder = fs::weakly_canonical(whole.parent_path(), failed);
  return failed ? path : (folder / whole.filename()).string();
}

Result<void> mirror(const std::string& root, const std::string& name,
                    const std::vector<std::string>& targets) {
  if (targets.empty()) return bind_folder(name, root + "/" + name);
  TRY_VOID(bind_folder(name, root + "/.host/" + name));
  return link_all(root, "/" + name, targets);
}

}  // namespace nvdra::sandbox
