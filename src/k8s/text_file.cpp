#include "k8s/text_file.hpp"

#include "base/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace nvdra::k8s {
namespace {

constexpr std::size_t longest = 4u << 20;

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  // A named pipe would block the loop: O_NONBLOCK, and only regular files are read.
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return errno_failure("");
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return errno_failure("");
  if (S_ISDIR(found.st_mode)) return errno_failure("", EISDIR);
  if (!S_ISREG(found.st_mode)) return errno_failure("", EINVAL);

  std::string text;
  for (;;) {
    std::size_t old = text.size();
    if (old > longest) return errno_failure("", EFBIG);
    text.resize(old + 16384);
    ssize_t count = ::read(file.get(), text.data() + old, text.size() - old);
    if (count < 0 && errno != EINTR) return errno_failure("");
    text.resize(old + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return text;
  }
}

Result<FileStamp> stamp_of(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return errno_failure("");
  return FileStamp{found.st_dev, found.st_ino, found.st_mtim.tv_sec, found.st_mtim.tv_nsec,
                   found.st_size};
}

}  // namespace nvdra::k8s
