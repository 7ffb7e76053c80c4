#include "base/files.hpp"

#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <random>

namespace nvdra {
namespace {

// A path, split at its last '/'.
struct Split {
  std::string parent;  // "" = none
  std::string name;
};

Split split(const std::string& path) {
  std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, std::max<std::size_t>(slash, 1)), path.substr(slash + 1)};
}

Result<Fd> open_at(int directory, const std::string& path, int flags, mode_t mode = 0) {
  Fd file(::openat(directory, path.c_str(), flags | O_CLOEXEC, mode));
  if (!file) return errno_failure("");
  return file;
}

Result<std::string> read_open(int file, std::size_t limit) {
  struct stat found{};
  if (::fstat(file, &found) != 0) return errno_failure("");
  if (S_ISDIR(found.st_mode)) return errno_failure("", EISDIR);
  if (!S_ISREG(found.st_mode)) return refuse("not a regular file");

  std::string text;
  for (;;) {
    // One byte more than the limit tells "just fits" from "too long".
    std::size_t had = text.size();
    text.resize(had + std::min<std::size_t>(limit - had + 1, 64u << 10));
    ssize_t count = ::read(file, text.data() + had, text.size() - had);
    if (count < 0 && errno != EINTR) return errno_failure("");
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return text;
    if (text.size() > limit)
      return fail(make_error_code(boost::system::errc::file_too_large),
                  fmt::format("longer than {} bytes", limit));
  }
}

Result<std::string> read_at(int directory, const std::string& path, int flags, std::size_t limit) {
  // O_NONBLOCK: a FIFO in this place must not block the loop.
  Result<Fd> file = open_at(directory, path, O_RDONLY | O_NONBLOCK | flags);
  if (!file) return std::move(file).failure().during("read " + path);
  Result<std::string> text = read_open(file->get(), limit);
  if (!text) return std::move(text).failure().during("read " + path);
  return text;
}

Result<void> write_all(int file, std::string_view content) {
  while (!content.empty()) {
    ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_failure("write");
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return ok();
}

// A new name beside `name`. Random, so that two writers never share a draft.
std::string draft_name(std::string_view prefix, std::string_view name) {
  std::random_device random;
  return fmt::format("{}{}.{:08x}", prefix, name.substr(0, 200), random());
}

Result<void> write_draft(int directory, const std::string& draft, std::string_view content,
                         mode_t mode) {
  TRY(Fd file, open_at(directory, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TRY_VOID(write_all(file.get(), content));
  // Not by openat: the mode must not depend on the umask.
  if (::fchmod(file.get(), mode) != 0) return errno_failure("fchmod");
  if (::fsync(file.get()) != 0) return errno_failure("fsync");
  if (::close(file.release()) != 0) return errno_failure("close");
  return ok();
}

Result<void> replace_in(int directory, const std::string& name, std::string_view content,
                        mode_t mode, std::string_view draft_prefix) {
  std::string draft = draft_name(draft_prefix, name);
  Result<void> put = write_draft(directory, draft, content, mode);
  if (put && ::renameat(directory, draft.c_str(), directory, name.c_str()) != 0)
    put = errno_failure("rename");
  if (!put) {
    ::unlinkat(directory, draft.c_str(), 0);
    return put;
  }
  if (::fsync(directory) != 0) return errno_failure("fsync directory");
  return ok();
}

}  // namespace

Result<std::string> read_file(int directory, const std::string& path, std::size_t limit) {
  return read_at(directory, path, O_NOFOLLOW, limit);
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  return read_at(AT_FDCWD, path, 0, limit);
}

Result<void> replace_file(int directory, const std::string& path, std::string_view content,
                          mode_t mode, std::string_view draft_prefix) {
  auto [parent, name] = split(path);
  std::string step = "write " + path;
  Result<Fd> opened = open_at(directory, parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY);
  if (!opened) return std::move(opened).failure().during(step);
  Result<void> replaced = replace_in(opened->get(), name, content, mode, draft_prefix);
  if (!replaced) return std::move(replaced).failure().during(step);
  return ok();
}

Result<Fd> open_directory(const std::string& path) {
  Result<Fd> directory = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!directory) return std::move(directory).failure().during("open directory " + path);
  return directory;
}

Result<Fd> open_directory(int parent, const std::string& name) {
  Result<Fd> directory = open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return std::move(directory).failure().during("open directory " + name);
  return directory;
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), mode) == 0) {
      if (::chmod(part.c_str(), mode) != 0) return errno_failure("set mode of directory " + part);
      continue;
    }
    int reason = errno;
    struct stat found{};
    if (::stat(part.c_str(), &found) != 0) return errno_failure("make directory " + part, reason);
    if (!S_ISDIR(found.st_mode))
      return fail(make_error_code(boost::system::errc::not_a_directory), "make directory " + part);
  }
  return ok();
}

Result<void> remove_file(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT)
    return errno_failure("remove " + name);
  return ok();
}

Result<Fd> try_lock_file(int directory, const std::string& name) {
  Result<Fd> file = open_at(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (!file) return std::move(file).failure().during("lock " + name);
  while (::flock(file->get(), LOCK_EX | LOCK_NB) != 0)
    if (errno != EINTR) return errno_failure("lock " + name);
  return file;
}

}  // namespace nvdra
