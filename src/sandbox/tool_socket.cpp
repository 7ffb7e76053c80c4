#include "sandbox/tool_socket.hpp"

#include "base/try.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cstring>

namespace nvdra::sandbox {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Address> tcp_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto* four = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.size = sizeof *four;
    return address;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.size = sizeof *six;
    return address;
  }
  return errno_failure(text, EINVAL);
}

Result<Address> unix_address(const std::string& path) {
  Address address;
  auto* name = reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.size() >= sizeof name->sun_path) return errno_failure(path, ENAMETOOLONG);
  name->sun_family = AF_UNIX;
  std::memcpy(name->sun_path, path.c_str(), path.size() + 1);
  address.size = sizeof *name;
  return address;
}

Result<Fd> listen_at(const Address& address) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_failure("socket");
  const int on = 1;
  if (address.storage.ss_family != AF_UNIX)
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), address.get(), address.size) != 0) return errno_failure("bind");
  if (::listen(fd.get(), 64) != 0) return errno_failure("listen");
  return fd;
}

Result<Fd> connect_at(const Address& address, Duration limit) {
  Fd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_failure("socket");
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  const timeval time{.tv_sec = whole / 1000000, .tv_usec = whole % 1000000};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  if (::connect(fd.get(), address.get(), address.size) != 0) return errno_failure("connect");
  return fd;
}

}  // namespace

Result<Fd> listen_tcp(const std::string& address, std::uint16_t port) {
  if (address.empty()) {
    TRY(const Address all, tcp_address("::", port));
    Result<Fd> both = listen_at(all);
    if (both || both.error().code != boost::system::errc::address_family_not_supported) return both;
  }
  TRY(const Address one, tcp_address(address.empty() ? "0.0.0.0" : address, port));
  return listen_at(one);
}

Result<Fd> listen_unix(const std::string& path) {
  TRY(const Address address, unix_address(path));
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
      !connect_at(address, std::chrono::milliseconds(200)))
    ::unlink(path.c_str());
  return listen_at(address);
}

Result<Fd> connect_tcp(const std::string& address, std::uint16_t port, Duration limit) {
  TRY(const Address one, tcp_address(address, port));
  return connect_at(one, limit);
}

Result<Fd> connect_unix(const std::string& path, Duration limit) {
  TRY(const Address one, unix_address(path));
  return connect_at(one, limit);
}

LineSocket::LineSocket(const asio::any_io_executor& executor, Fd fd)
    : stream_(executor, fd.release()) {}

Async<Result<std::shared_ptr<LineSocket>>> LineSocket::connect(std::string address,
                                                               std::uint16_t port) {
  CO_TRY(const Address one, tcp_address(address, port));
  Fd fd(::socket(one.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) co_return errno_failure("socket");
  const int number = fd.get();
  const bool done = ::connect(number, one.get(), one.size) == 0;
  if (!done && errno != EINPROGRESS) co_return errno_failure("connect");
  auto executor = co_await asio::this_coro::executor;
  auto socket = std::make_shared<LineSocket>(executor, std::move(fd));
  if (!done) {
    auto [failed] = co_await socket->stream_.async_wait(asio::posix::descriptor_base::wait_write,
                                                        asio::as_tuple(asio::use_awaitable));
    if (failed) co_return fail(failed, "connect");
  }
  int error = 0;
  socklen_t size = sizeof error;
  (void)::getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) co_return errno_failure("connect", error);
  co_return socket;
}

Async<Result<std::string>> LineSocket::line() {
  for (;;) {
    if (const auto end = read_.find('\n'); end != std::string::npos) {
      std::string text = read_.substr(0, end);
      read_.erase(0, end + 1);
      co_return text;
    }
    if (read_.size() > (1u << 20)) co_return errno_failure("read line", EMSGSIZE);
    std::array<char, 4096> piece{};
    auto [failed, size] =
        co_await stream_.async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
    if (failed) co_return fail(failed, "read line");
    read_.append(piece.data(), size);
  }
}

void LineSocket::send(std::string_view text) {
  std::string line(text);
  line += '\n';
  const int fd = stream_.native_handle();
  const ssize_t sent = ::send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(line.size())) end();
}

void LineSocket::end() {
  ::shutdown(stream_.native_handle(), SHUT_RDWR);
}

Async<Result<std::shared_ptr<LineSocket>>> accept_on(asio::posix::stream_descriptor& listening) {
  auto executor = co_await asio::this_coro::executor;
  for (;;) {
    Fd fd(::accept4(listening.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) co_return std::make_shared<LineSocket>(executor, std::move(fd));
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) co_return errno_failure("accept");
    auto [failed] = co_await listening.async_wait(asio::posix::descriptor_base::wait_read,
                                                  asio::as_tuple(asio::use_awaitable));
    if (failed) co_return fail(failed, "accept");
  }
}

}  // namespace nvdra::sandbox
