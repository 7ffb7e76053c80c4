#include "dra/sockets.hpp"

#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

namespace nvdra::dra {
namespace {

// Precondition: check_socket_path.
sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), longest_socket_path));
  return address;
}

Fd unix_socket() {
  return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

pid_t peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

std::string in_directory(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

}  // namespace

std::string service_socket_path(const std::string& plugin_directory) {
  return in_directory(plugin_directory, "dra.sock");
}

std::string registrar_socket_path(const std::string& registrar_directory,
                                  const std::string& driver) {
  return in_directory(registrar_directory, driver + "-reg.sock");
}

Result<void> check_socket_path(const std::string& path, const std::string& flag) {
  if (!path.starts_with('/'))
    return refuse(
        fmt::format("socket path {} is not absolute: give {} an absolute directory", path, flag));
  if (path.size() <= longest_socket_path) return ok();
  return refuse(
      fmt::format("socket path {} has {} bytes, Linux allows {}: give {} a shorter directory", path,
                  path.size(), longest_socket_path, flag));
}

Result<Occupant> occupant_of(const std::string& path, pid_t* pid) {
  if (pid) *pid = 0;
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return Occupant::nothing;
    return errno_failure("look at socket " + path);
  }
  if (!S_ISSOCK(found.st_mode)) return Occupant::other_file;
  Fd probe = unix_socket();
  if (!probe) return errno_failure("make a socket");
  sockaddr_un address = address_of(path);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    if (pid) *pid = peer_of(probe.get());
    return Occupant::live_socket;
  }
  if (errno == EAGAIN) return Occupant::live_socket;  // somebody listens and is busy
  if (errno == ECONNREFUSED) return Occupant::dead_socket;
  if (errno == ENOENT) return Occupant::nothing;
  return errno_failure("connect to socket " + path);
}

Result<ListeningSocket> ListeningSocket::open(const std::string& path) {
  pid_t pid = 0;
  TRY(Occupant occupant, occupant_of(path, &pid));
  if (occupant == Occupant::live_socket)
    return fail(make_error_code(boost::system::errc::address_in_use),
                fmt::format("socket {} is served by another plugin{}", path,
                            pid > 0 ? fmt::format(" (process {})", pid) : ""));
  if (occupant == Occupant::other_file)
    return refuse(fmt::format("{} exists and is not a socket: remove it", path));
  if (occupant == Occupant::dead_socket && ::unlink(path.c_str()) != 0 && errno != ENOENT)
    return errno_failure("remove dead socket " + path);

  ListeningSocket socket;
  socket.fd_ = unix_socket();
  if (!socket.fd_) return errno_failure("make a socket");
  sockaddr_un address = address_of(path);
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.fd_.get(), raw, sizeof address) != 0)
    return errno_failure("bind socket " + path);
  struct stat made{};
  if (::lstat(path.c_str(), &made) != 0) return errno_failure("look at socket " + path);
  socket.path_ = path;
  socket.device_ = made.st_dev;
  socket.inode_ = made.st_ino;
  if (::listen(socket.fd_.get(), SOMAXCONN) != 0) return errno_failure("listen on socket " + path);
  return socket;
}

ListeningSocket& ListeningSocket::operator=(ListeningSocket&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::move(other.fd_);
  path_ = std::move(other.path_);
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

Fd ListeningSocket::accept() const {
  return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool ListeningSocket::in_place() const {
  struct stat found{};
  return fd_ && ::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ &&
         found.st_ino == inode_;
}

void ListeningSocket::close() {
  if (in_place()) ::unlink(path_.c_str());
  fd_.reset();
}

}  // namespace nvdra::dra
