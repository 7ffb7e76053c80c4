#include "roles/wait_for_driver/link.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nvdra::roles::wait_for_driver {

std::string link_target(std::string_view parent, std::string_view root) {
  while (root.ends_with('/')) root.remove_suffix(1);
  const std::string_view name = root.substr(root.rfind('/') + 1);
  return name.empty() ? std::string(parent) : fmt::format("{}/{}", parent, name);
}

Result<void> make_link(const std::string& path, const std::string& target) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISLNK(found.st_mode))
      return refuse(
          fmt::format("{} exists and is no link; it is to become a link to {}: remove it "
                      "or mount it elsewhere",
                      path, target));
    if (::unlink(path.c_str()) != 0) return errno_failure("replace link " + path);
  }
  if (::symlink(target.c_str(), path.c_str()) != 0)
    return errno_failure(fmt::format("link {} to {}", path, target));
  return ok();
}

}  // namespace nvdra::roles::wait_for_driver
