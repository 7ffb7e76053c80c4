#include "imex/driver_root.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <deque>
#include <vector>

namespace nvdra::imex {
namespace {

constexpr std::array<std::string_view, 6> binaries = {"/",         "/opt/bin", "/usr/bin",
                                                      "/usr/sbin", "/bin",     "/sbin"};
constexpr std::array<std::string_view, 7> libraries = {"/",
                                                       "/usr/lib64",
                                                       "/usr/lib/x86_64-linux-gnu",
                                                       "/usr/lib/aarch64-linux-gnu",
                                                       "/lib64",
                                                       "/lib/x86_64-linux-gnu",
                                                       "/lib/aarch64-linux-gnu"};
constexpr int most_links = 40;  // the kernel's own limit

std::string join(std::string_view directory, std::string_view name) {
  while (directory.ends_with('/')) directory.remove_suffix(1);
  while (name.starts_with('/')) name.remove_prefix(1);
  return fmt::format("{}/{}", directory, name);
}

// The path's steps, in front of those that are still to be taken.
void put_in_front(std::deque<std::string>& steps, std::string_view path) {
  std::vector<std::string> fresh;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view step = path.substr(0, slash);
    if (!step.empty() && step != ".") fresh.emplace_back(step);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  steps.insert(steps.begin(), fresh.begin(), fresh.end());
}

Result<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size < 0) return errno_failure(path);
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Result<Found> find(const DriverRoot& root, std::string_view name,
                   std::span<const std::string_view> directories) {
  for (const std::string_view directory : directories) {
    const std::string inside = join(directory, name);
    const Result<std::string> real = resolve_in_root(root.here, inside);
    struct stat status{};
    if (!real || ::lstat(real->c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    return Found{.inside = inside, .real = *real};
  }
  return refuse(not_found(root, name, directories) +
                ": install the NVIDIA driver or the package that brings this file there, or set "
                "nvidiaDriverRoot to where the driver is");
}

}  // namespace

std::string DriverRoot::host_path(std::string_view path) const {
  return join(host, path);
}

std::span<const std::string_view> binary_directories() {
  return binaries;
}

std::span<const std::string_view> library_directories() {
  return libraries;
}

std::string not_found(const DriverRoot& root, std::string_view name,
                      std::span<const std::string_view> directories) {
  return fmt::format("{} not found in the driver root {} (searched {})", name, root.host,
                     fmt::join(directories, ", "));
}

Result<Found> find_binary(const DriverRoot& root, std::string_view name) {
  return find(root, name, binaries);
}

Result<Found> find_library(const DriverRoot& root, std::string_view name) {
  return find(root, name, libraries);
}

Result<std::string> resolve_in_root(const std::string& root, std::string_view path) {
  std::string_view base = root;
  while (base.ends_with('/')) base.remove_suffix(1);
  std::vector<std::string> taken;
  std::deque<std::string> steps;
  put_in_front(steps, path);
  const auto so_far = [&] {
    return taken.empty() ? std::string(base) : fmt::format("{}/{}", base, fmt::join(taken, "/"));
  };

  for (int links = 0; !steps.empty();) {
    const std::string step = std::move(steps.front());
    steps.pop_front();
    if (step == "..") {
      if (!taken.empty()) taken.pop_back();
      continue;
    }
    const std::string next = so_far() + "/" + step;
    struct stat status{};
    if (::lstat(next.c_str(), &status) != 0) return errno_failure(next);
    if (!S_ISLNK(status.st_mode)) {
      if (!S_ISDIR(status.st_mode) && !steps.empty()) return errno_failure(next, ENOTDIR);
      taken.push_back(step);
      continue;
    }
    if (++links > most_links) return errno_failure(next, ELOOP);
    Result<std::string> target = read_link(next);
    if (!target) return std::move(target).failure();
    if (target->starts_with('/')) taken.clear();
    put_in_front(steps, *target);
  }
  const std::string answer = so_far();
  return answer.empty() ? std::string("/") : answer;
}

bool exists(const DriverRoot& root) {
  struct stat status{};
  return ::stat(root.here.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

DriverRoot dev_root(const DriverRoot& root) {
  struct stat status{};
  const Result<std::string> dev = resolve_in_root(root.here, "/dev");
  if (dev && ::lstat(dev->c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return root;
  return {};
}

}  // namespace nvdra::imex
