#include "base/stack_dump.hpp"

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/time.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace nvdra {
namespace {

constexpr std::size_t size_limit = 2u << 20;  // bytes of one dump
constexpr std::size_t margin = 5000;          // kept free for the remark that it was cut

// Writes all of it over what is there; nothing that is not a regular file is touched.
bool overwrite(const std::string& path, std::string_view text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                 0666));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  while (!text.empty()) {
    ssize_t size = ::write(file.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out + "\n";
}

std::string describe_thread(const std::string& id) {
  std::string folder = "/proc/self/task/" + id + "/";
  std::string text = "thread " + id;
  if (Result<std::string> name = read_file(folder + "comm"); name)
    text += " " + name->substr(0, name->find('\n'));
  text += "\n";
  for (const char* file : {"status", "wchan", "syscall", "stack"}) {
    Result<std::string> content = read_file(folder + file);
    if (!content || content->empty()) continue;
    std::string_view kept = *content;
    if (std::string_view(file) == "status") kept = kept.substr(0, kept.find("\nTgid"));
    text += indented(std::string(file) + ": " + std::string(kept));
  }
  return text;
}

}  // namespace

std::string describe_threads(std::string_view marker) {
  std::string text =
      fmt::format("{}\npid {} at {}\n\n", marker, ::getpid(), rfc3339(WallClock::now()));
  Result<std::vector<Entry>> threads = list_directory(AT_FDCWD, "/proc/self/task");
  if (!threads) return text;
  for (const Entry& thread : *threads) {
    std::string described = describe_thread(thread.name) + "\n";
    if (text.size() + described.size() > size_limit - margin)
      return text + "... cut here: the dump would be longer than 2 MiB\n";
    text += described;
  }
  return text;
}

StackDump::StackDump(asio::any_io_executor executor, std::string marker, std::string path)
    : signals_(executor, SIGUSR2), marker_(std::move(marker)), path_(std::move(path)) {
  wait();
}

void StackDump::stop() {
  signals_.cancel();
}

void StackDump::wait() {
  signals_.async_wait([this](boost::system::error_code failed, int) {
    if (failed) return;
    write();
    wait();
  });
}

void StackDump::write() const {
  std::string text = describe_threads(marker_);
  if (overwrite(path_, text)) {
    LOG_INFO(0, "Wrote the state of all threads", {{"file", path_}});
  } else {
    std::fprintf(stderr, "\n%s\n", text.c_str());
  }
}

}  // namespace nvdra
