#include "roles/kubelet_plugin/driver_devices.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr std::string_view channels = "/dev/nvidia-caps-imex-channels/";
constexpr std::string_view capabilities = "/dev/nvidia-caps/";

}  // namespace

bool is_driver_device(std::string_view path) {
  if (path.starts_with(channels)) return path.substr(channels.size()).starts_with("channel");
  if (path.starts_with(capabilities))
    return path.substr(capabilities.size()).starts_with("nvidia-cap");
  constexpr std::string_view directory = "/dev/";
  if (!path.starts_with(directory)) return false;
  std::string_view name = path.substr(directory.size());
  if (name.find('/') != std::string_view::npos || !name.starts_with("nvidia")) return false;
  for (std::string_view other : {"nvidia-fs", "nvidia-nvswitch", "nvidia-nvlink"})
    if (name.starts_with(other)) return false;
  return true;
}

std::vector<cdi::DeviceNode> find_driver_devices(const imex::DriverRoot& dev_root) {
  std::vector<cdi::DeviceNode> nodes;
  std::string root = dev_root.here == "/" ? "" : dev_root.here;
  for (const std::string directory :
       {"/dev", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels"}) {
    Result<Fd> opened = open_directory(root + directory);
    if (!opened) continue;
    Result<std::vector<Entry>> entries = list_directory(opened->get());
    if (!entries) continue;
    for (const Entry& entry : *entries) {
      std::string path = directory + "/" + entry.name;
      struct stat status{};
      bool ours = is_driver_device(path) &&
                  ::fstatat(opened->get(), entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                  S_ISCHR(status.st_mode);
      if (!ours) continue;
      cdi::DeviceNode node{path};
      node.host_path = root + path;
      node.major = major(status.st_rdev);
      node.minor = minor(status.st_rdev);
      node.file_mode = status.st_mode & 07777;
      node.permissions = "rwm";
      if (status.st_gid != 0) node.gid = status.st_gid;
      nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

}  // namespace nvdra::roles::kubelet_plugin
