#include "imex/hosts_file.hpp"

#include "base/fd.hpp"
#include "base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nvdra::imex {
namespace {

Failure unusable(const std::string& path, std::string_view step, std::string_view why) {
  return refuse(fmt::format(
      "{} cannot be {} ({}), so this node's nvidia-imex would not find its peers by name; run the "
      "daemon with a writable {}",
      path, step, why, path));
}

Result<void> write_in_place(int file, const std::string& text) {
  const ssize_t written = ::pwrite(file, text.data(), text.size(), 0);
  if (written < 0) return errno_failure("write");
  if (static_cast<std::size_t>(written) != text.size()) return errno_failure("write", ENOSPC);
  if (::ftruncate(file, static_cast<off_t>(text.size())) != 0) return errno_failure("truncate");
  return ok();
}

}  // namespace

Result<bool> update_hosts(const std::string& path, const std::vector<Slot>& slots) {
  Result<std::string> before = read_file(path, 4u << 20);
  if (!before) {
    if (before.error().code != boost::system::errc::no_such_file_or_directory)
      return unusable(path, "read", before.error().text());
    before = std::string{};
  }
  const std::string after = edit_hosts(*before, slots);
  if (after == *before) return false;
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return unusable(path, "written", errno_failure("open").error.text());
  const Result<void> written = write_in_place(file.get(), after);
  if (!written) return unusable(path, "written", written.error().text());
  return true;
}

}  // namespace nvdra::imex
