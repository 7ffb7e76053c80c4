// Listing and removing trees: the part of base/files.hpp that walks.
#include "base/files.hpp"
#include "base/try.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

namespace nvdra {
namespace {

// A tree that is deeper was not made by us; each level costs a descriptor.
constexpr int deepest = 128;

struct Close {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
using Stream = std::unique_ptr<DIR, Close>;

bool is_directory(int parent, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat found{};
  return ::fstatat(parent, entry.d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(found.st_mode);
}

// Takes `directory`.
Result<std::vector<Entry>> entries_of(Fd directory) {
  int number = directory.get();
  Stream stream(::fdopendir(number));
  if (!stream) return errno_failure("");
  (void)directory.release();
  std::vector<Entry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (!entry && errno != 0) return errno_failure("");
    if (!entry) break;
    std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      entries.push_back({std::string(name), is_directory(number, *entry)});
  }
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

Result<Fd> enter(int parent, const std::string& name) {
  Fd child(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!child) return errno_failure("remove " + name);
  return child;
}

Result<void> refuse_mount_point(int parent, int child, const std::string& name) {
  struct stat above{}, here{};
  if (::fstat(parent, &above) != 0 || ::fstat(child, &here) != 0)
    return errno_failure("remove " + name);
  if (above.st_dev != here.st_dev)
    return fail(make_error_code(boost::system::errc::cross_device_link),
                fmt::format("remove {}: something is mounted there", name));
  return ok();
}

// NOLINTNEXTLINE(misc-no-recursion): bounded by `deepest`.
Result<void> remove_directory(int parent, const std::string& name, int depth) {
  if (depth > deepest)
    return refuse(fmt::format("remove {}: more than {} directories deep", name, deepest));
  TRY(Fd child, enter(parent, name));
  TRY_VOID(refuse_mount_point(parent, child.get(), name));
  TRY(Fd listed, enter(child.get(), "."));
  TRY(std::vector<Entry> entries, entries_of(std::move(listed)));
  for (const Entry& entry : entries) {
    Result<void> removed = entry.is_directory ? remove_directory(child.get(), entry.name, depth + 1)
                                              : remove_file(child.get(), entry.name);
    if (!removed) return std::move(removed).failure().during("in " + name);
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    return errno_failure("remove " + name);
  return ok();
}

}  // namespace

Result<std::vector<Entry>> list_directory(int directory, const std::string& path) {
  Fd opened(::openat(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return errno_failure("list directory " + path);
  Result<std::vector<Entry>> entries = entries_of(std::move(opened));
  if (!entries) return std::move(entries).failure().during("list directory " + path);
  return entries;
}

Result<void> remove_tree(int directory, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    return refuse(fmt::format("remove \"{}\": not the name of a directory entry", name));
  struct stat found{};
  if (::fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return ok();
    return errno_failure("remove " + name);
  }
  if (!S_ISDIR(found.st_mode)) return remove_file(directory, name);
  return remove_directory(directory, name, 1);
}

}  // namespace nvdra
