#include "base/inotify.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace nvdra {
namespace {

constexpr std::uint32_t changes =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_CLOSE_WRITE;
constexpr std::uint32_t endings = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

struct Seen {
  bool something = false;
  bool gone = false;
};

// Everything that is queued: a burst is one change. A queue that overflowed holds changes, too.
Result<Seen> drain(int watch) {
  Seen seen;
  alignas(inotify_event) std::array<char, 16u << 10> bytes;
  for (;;) {
    ssize_t size = ::read(watch, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return seen;
    if (size < 0) return errno_failure("read inotify");
    seen.something = true;
    for (const char *at = bytes.data(), *end = at + size; at < end;) {
      inotify_event event;
      std::memcpy(&event, at, sizeof event);
      seen.gone = seen.gone || (event.mask & endings) != 0;
      at += sizeof event + event.len;
    }
  }
}

}  // namespace

Result<DirectoryWatch> DirectoryWatch::open(asio::any_io_executor executor,
                                            const std::string& directory) {
  Fd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch) return errno_failure("watch " + directory + ": inotify_init1");
  if (::inotify_add_watch(watch.get(), directory.c_str(),
                          changes | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR) < 0)
    return errno_failure("watch " + directory);
  return DirectoryWatch(asio::posix::stream_descriptor(executor, watch.release()), directory);
}

Async<Result<void>> DirectoryWatch::changed() {
  while (!gone_) {
    co_await stream_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    Result<Seen> seen = drain(stream_.native_handle());
    if (!seen) co_return std::move(seen).failure().during("watch " + directory_);
    gone_ = seen->gone;
    if (seen->something && !gone_) co_return ok();
  }
  co_return refuse("watch " + directory_ + ": the directory is gone");
}

}  // namespace nvdra
