#include "roles/kubelet_plugin/driver_params.hpp"

#include "base/files.hpp"
#include "base/try.hpp"

#include <fcntl.h>
#include <sys/mount.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr const char* proc_directory = "/proc/driver/nvidia";
constexpr const char* params_path = "/proc/driver/nvidia/params";

// The kernel writes blanks and the like as \ooo.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool octal = text[i] == '\\' && i + 3 < text.size();
    if (!octal) {
      out += text[i];
      continue;
    }
    out +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

}  // namespace

std::vector<std::string> mounts_below(std::string_view mountinfo, std::string_view directory) {
  std::vector<std::string> points;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    if (!(words >> id >> parent >> device >> root >> point)) continue;
    point = unescaped(point);
    if (point == directory || point.starts_with(std::string(directory) + "/"))
      points.push_back(point);
  }
  // Later mounts lie on top of earlier ones at the same place.
  std::multimap<std::ptrdiff_t, std::string, std::greater<>> by_depth;
  for (auto point = points.rbegin(); point != points.rend(); ++point)
    by_depth.emplace(std::ranges::count(*point, '/'), *point);
  points.clear();
  for (auto& [depth, point] : by_depth) points.push_back(point);
  return points;
}

Result<void> unmount_driver_proc() {
  TRY(std::string mountinfo, read_file("/proc/self/mountinfo"));
  for (const std::string& point : mounts_below(mountinfo, proc_directory))
    if (::umount2(point.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT)
      return errno_failure("unmount " + point);
  return ok();
}

std::string masked_params(std::string_view params) {
  std::string out;
  std::istringstream lines{std::string(params)};
  for (std::string line; std::getline(lines, line);)
    out += (line.starts_with("ModifyDeviceFiles:") ? std::string("ModifyDeviceFiles: 0") : line) +
           "\n";
  return out;
}

Result<void> mask_driver_params(const std::string& plugin_directory) {
  Result<std::string> params = read_file(params_path);
  if (!params && params.error().code == boost::system::errc::no_such_file_or_directory) return ok();
  if (!params) return std::move(params).failure();
  TRY(Fd directory, open_directory(plugin_directory));
  TRY_VOID(replace_file(directory.get(), "driver-params", masked_params(*params), 0444));
  std::string copy = plugin_directory + "/driver-params";
  if (::mount(copy.c_str(), params_path, nullptr, MS_BIND, nullptr) != 0)
    return errno_failure("mount " + copy + " over " + params_path);
  return ok();
}

}  // namespace nvdra::roles::kubelet_plugin
