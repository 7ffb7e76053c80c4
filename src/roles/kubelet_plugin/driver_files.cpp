#include "roles/kubelet_plugin/driver_files.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "imex/driver_version.hpp"
#include "roles/kubelet_plugin/driver_devices.hpp"
#include "roles/kubelet_plugin/elf_names.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr std::array<std::string_view, 4> tools{"nvidia-imex", "nvidia-imex-ctl", "nvidia-smi",
                                                "nvidia-debugdump"};
constexpr std::size_t needed_tools = 2;  // the first ones

// "570.86.15" of "libcuda.so.570.86.15"; "" where the number is only an interface's ("1", "1.1").
std::string_view driver_version_of(std::string_view name) {
  auto at = name.find(".so.");
  if (at == std::string_view::npos) return {};
  std::string_view version = name.substr(at + 4);
  bool digits = version.size() >= 3 && version.find_first_not_of("0123456789.") == version.npos;
  return digits && version.find('.') >= 3 && version.find('.') != version.npos ? version
                                                                               : std::string_view{};
}

bool is_regular(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Collects the libraries; every new file is read once for the names in it.
class Collector {
public:
  Collector(const imex::DriverRoot& root, std::string_view version, DriverFiles& files)
      : root_(root), version_(version), files_(files) {}

  void scan() {
    std::set<std::string> seen;  // /lib64 is often a link to /usr/lib64
    for (std::string_view directory : imex::library_directories()) {
      if (directory == "/") continue;
      Result<std::string> real = imex::resolve_in_root(root_.here, directory);
      if (real && seen.insert(*real).second) scan(std::string(directory), *real);
    }
  }

  void add_tool(const std::string& real) { read_names(real, ""); }

  // Follows what has been collected to what it is linked against.
  void close() {
    while (!open_.empty()) {
      auto [name, by] = std::move(open_.front());
      open_.pop_front();
      if (!asked_.insert(name).second || is_system_library(name) || has(name)) continue;
      Result<imex::Found> found = imex::find_library(root_, name);
      if (found) {
        add(parent_of(found->inside), name, found->real);
      } else {
        files_.missing.push_back(fmt::format("{} needs it: {}", by, found.error().text()));
      }
    }
  }

private:
  static std::string parent_of(const std::string& path) {
    auto slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
  }

  bool has(const std::string& name) const {
    return std::ranges::any_of(files_.library_directories, [&](const std::string& directory) {
      return files_.libraries.contains(directory + "/" + name);
    });
  }

  void scan(const std::string& directory, const std::string& real_directory) {
    Result<Fd> opened = open_directory(real_directory);
    if (!opened) return;
    Result<std::vector<Entry>> entries = list_directory(opened->get());
    if (!entries) {
      LOG_WARNING("Cannot list a library directory", {{"err", entries.error().text()}});
      return;
    }
    for (const Entry& entry : *entries) {
      if (entry.is_directory || !is_driver_library(entry.name, version_)) continue;
      Result<std::string> real = imex::resolve_in_root(root_.here, directory + "/" + entry.name);
      // A link to another version's file is another version's library.
      bool wanted = real && is_regular(*real) &&
                    is_driver_library(real->substr(real->rfind('/') + 1), version_);
      if (wanted) add(directory, entry.name, *real);
    }
  }

  void add(const std::string& directory, const std::string& name, const std::string& real) {
    if (std::ranges::find(files_.library_directories, directory) ==
        files_.library_directories.end())
      files_.library_directories.push_back(directory);
    files_.libraries.emplace(directory + "/" + name, real);
    read_names(real, directory);
  }

  // `directory`: of a library, where it lies in the container.
  void read_names(const std::string& real, const std::string& directory) {
    if (!read_.insert(real).second) return;
    Result<ElfNames> names = read_elf_names(real);
    if (!names) {
      LOG_WARNING("Cannot read the names in a file of the driver", {{"err", names.error().text()}});
      return;
    }
    bool own_name = !directory.empty() && !names->soname.empty() &&
                    names->soname.find('/') == std::string::npos;
    if (own_name) files_.libraries.emplace(directory + "/" + names->soname, real);
    std::string by = real.substr(real.rfind('/') + 1);
    for (std::string& needed : names->needed) open_.emplace_back(std::move(needed), by);
  }

  const imex::DriverRoot& root_;
  std::string_view version_;
  DriverFiles& files_;
  std::set<std::string> read_;
  std::set<std::string> asked_;
  std::deque<std::pair<std::string, std::string>> open_;  // needed name, who needs it
};

}  // namespace

bool is_driver_library(std::string_view name, std::string_view version) {
  bool ours = (name.starts_with("libnvidia-") && !name.starts_with("libnvidia-container")) ||
              name.starts_with("libcuda.so") || name.starts_with("libcudadebugger.so") ||
              name.starts_with("libnvcuvid.so");
  if (!ours || name.find(".so.") == std::string_view::npos) return false;
  std::string_view own = driver_version_of(name);
  return own.empty() || version.empty() || own == version;
}

bool is_system_library(std::string_view name) {
  constexpr std::array<std::string_view, 13> system{
      "ld-linux",      "linux-vdso",  "libc.so",     "libm.so",    "libmvec.so",
      "libpthread.so", "libdl.so",    "librt.so",    "libutil.so", "libresolv.so",
      "libnsl.so.1",   "libgcc_s.so", "libstdc++.so"};
  return std::ranges::any_of(
      system, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

DriverFiles find_driver_files(const imex::DriverRoot& root, std::string_view version) {
  DriverFiles files;
  Collector collector(root, version, files);
  collector.scan();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    Result<imex::Found> tool = imex::find_binary(root, tools[i]);
    if (tool) {
      files.tools.emplace("/usr/bin/" + std::string(tools[i]), tool->real);
      collector.add_tool(tool->real);
    } else if (i < needed_tools) {
      files.missing.push_back(tool.error().text());
    }
  }
  collector.close();
  files.devices = find_driver_devices(imex::dev_root(root));
  return files;
}

}  // namespace nvdra::roles::kubelet_plugin
