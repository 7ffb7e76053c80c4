// Sockets of the simulated IMEX daemon, and text lines over them.
#pragma once

#include "base/fd.hpp"
#include "base/time.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace nvdra::sandbox {

// Listening sockets, non-blocking. `address` "" = all interfaces (IPv6 with IPv4, as the real
// daemon does, else IPv4). A dead Unix socket is replaced.
Result<Fd> listen_tcp(const std::string& address, std::uint16_t port);
Result<Fd> listen_unix(const std::string& path);

// Blocking, each step within `limit`: for nvidia-imex-ctl.
Result<Fd> connect_tcp(const std::string& address, std::uint16_t port, Duration limit);
Result<Fd> connect_unix(const std::string& path, Duration limit);

// A connection that carries lines. Shared by its reader and those who write to it or end it.
class LineSocket {
public:
  LineSocket(const asio::any_io_executor& executor, Fd fd);

  // Non-blocking connect.
  static Async<Result<std::shared_ptr<LineSocket>>> connect(std::string address,
                                                            std::uint16_t port);
  // The next line without its end; an error at the end of the connection.
  Async<Result<std::string>> line();
  // Sends a line, or ends the connection when the other side does not take it.
  void send(std::string_view text);
  // Makes line() end.
  void end();

private:
  asio::posix::stream_descriptor stream_;
  std::string read_;
};

// Accepts connections for ever and hands each to `serve`.
Async<Result<std::shared_ptr<LineSocket>>> accept_on(asio::posix::stream_descriptor& listening);

}  // namespace nvdra::sandbox
