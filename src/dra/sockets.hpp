// The kubelet plugin's Unix sockets: their names, and listening on them.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <string>

namespace nvdra::dra {

// <plugin directory>/dra.sock and <registrar directory>/<driver>-reg.sock [KEEP].
std::string service_socket_path(const std::string& plugin_directory);
std::string registrar_socket_path(const std::string& registrar_directory,
                                  const std::string& driver);

// Linux holds a socket's path in 108 bytes with its end.
inline constexpr std::size_t longest_socket_path = 107;
// The error names the path, its length, the limit and `flag`, which sets the directory.
Result<void> check_socket_path(const std::string& path, const std::string& flag);

// What is at a path.
enum class Occupant {
  nothing,
  dead_socket,  // nobody listens: left behind by a process that was killed
  live_socket,  // somebody listens
  other_file,
};
// `pid`, if not null, becomes the process that listens, 0 if unknown (another PID namespace).
Result<Occupant> occupant_of(const std::string& path, pid_t* pid = nullptr);

// A listening socket and its file. The file is removed by close(), and only while it is ours.
class ListeningSocket {
public:
  // Replaces a dead socket. A live one is errc::address_in_use, and never disturbed; any other file
  // is an error that asks to remove it. Errors name the path.
  static Result<ListeningSocket> open(const std::string& path);

  ListeningSocket() = default;
  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&& other) noexcept;
  ~ListeningSocket() { close(); }

  int fd() const { return fd_.get(); }
  // The next waiting connection (non-blocking, close-on-exec), or an Fd without number.
  Fd accept() const;
  // False once the file was removed or replaced by somebody else.
  bool in_place() const;
  void close();

private:
  Fd fd_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace nvdra::dra
