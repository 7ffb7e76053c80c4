#include "dra/served_socket.hpp"

#include "base/files.hpp"
#include "base/inotify.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "base/within.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>

#include <memory>

namespace nvdra::dra {
namespace {

constexpr Duration occupied_poll = 500ms;
constexpr Duration watch_limit = 10s;  // looked at so often even if inotify says nothing
constexpr Duration accept_pause = 1s;
constexpr mode_t directory_mode = 0750;

}  // namespace

ServedSocket::ServedSocket(asio::any_io_executor executor, Time& time, std::string path,
                           Accepted accepted)
    : executor_(std::move(executor)),
      time_(time),
      path_(std::move(path)),
      directory_(path_.substr(0, path_.rfind('/'))),
      accepted_(std::move(accepted)) {}

Async<Result<void>> ServedSocket::open(Duration patience) {
  Instant since = time_.now();
  for (bool told = false;; told = true) {
    Result<ListeningSocket> socket = ListeningSocket::open(path_);
    if (socket) co_return listen_on(*std::move(socket));
    const Error& error = socket.error();
    if (error.code != boost::system::errc::address_in_use) co_return std::move(socket).failure();
    if (time_.now() - since >= patience)
      co_return fail(error.code, error.doing + ": stop it, two plugins cannot serve one node");
    if (!told) LOG_WARNING("Waiting for another plugin to end", {{"err", error.text()}});
    co_await time_.sleep(occupied_poll);
  }
}

Result<void> ServedSocket::listen_on(ListeningSocket socket) {
  Fd waiter(::fcntl(socket.fd(), F_DUPFD_CLOEXEC, 0));
  if (!waiter) return errno_failure("listen on socket " + path_);
  ready_.reset();
  socket_ = std::move(socket);
  ready_.emplace(executor_, waiter.release());
  trouble_.clear();
  return ok();
}

Result<void> ServedSocket::listen_again() {
  // A missing directory is the kubelet's to make, but nobody can find us without it.
  TRY_VOID(make_directories(directory_, directory_mode));
  TRY(ListeningSocket socket, ListeningSocket::open(path_));
  return listen_on(std::move(socket));
}

Async<Result<void>> ServedSocket::run() {
  TaskGroup both(executor_);
  both.spawn("accept", accept_all());
  both.spawn("watch", watch());
  Result<void> ended = co_await both.join();
  co_return ended;
}

Async<Result<void>> ServedSocket::accept_all() {
  for (;;) {
    // Aborted when the socket is replaced by a new one: then wait on that. A cancellation of ours
    // throws at the next wait.
    auto [failed] = co_await ready_->async_wait(asio::posix::stream_descriptor::wait_read,
                                                asio::as_tuple(asio::use_awaitable));
    if (failed) continue;
    Fd connection = socket_.accept();
    if (connection) {
      accepted_(std::move(connection));
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      LOG_WARNING("Cannot accept a connection, retrying",
                  {{"socket", path_}, {"err", errno_failure("accept").error.text()}});
      co_await time_.sleep(accept_pause);
    }
  }
}

Async<Result<void>> ServedSocket::watch() {
  std::optional<DirectoryWatch> directory;
  for (;;) {
    if (!directory) {
      Result<DirectoryWatch> opened = DirectoryWatch::open(executor_, directory_);
      if (opened) directory.emplace(*std::move(opened));
    }
    if (!socket_.in_place()) restore();
    if (!directory) {
      co_await time_.sleep(accept_pause);
      continue;
    }
    Result<void> changed = co_await within(time_, watch_limit, directory->changed());
    if (!changed && changed.error().code != boost::system::errc::timed_out) directory.reset();
  }
}

void ServedSocket::restore() {
  Result<void> again = listen_again();
  if (again) {
    LOG_WARNING("The socket was removed, serving it again", {{"socket", path_}});
    return;
  }
  std::string trouble = again.error().text();
  if (trouble != trouble_)
    LOG_ERROR("The socket was removed or replaced, retrying",
              {{"socket", path_}, {"err", trouble}});
  trouble_ = std::move(trouble);
}

void ServedSocket::close() {
  ready_.reset();
  socket_.close();
}

}  // namespace nvdra::dra
