// ServedSocket: a Unix socket that is there as long as we serve it.
//   * Connections go to a callback.
//   * When its file is removed (somebody wiped the kubelet's directory), it is made again, with its
//     directory if need be. When another process has replaced it, that process is left alone and
//     trouble() says so until it is gone; then the socket is served again.
#pragma once

#include "base/async.hpp"
#include "base/time.hpp"
#include "dra/sockets.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <optional>

namespace nvdra::dra {

class ServedSocket {
public:
  using Accepted = std::function<void(Fd connection)>;
  ServedSocket(asio::any_io_executor executor, Time& time, std::string path, Accepted accepted);

  // Listens. While another process serves the path, waits up to `patience` for it to end: an old
  // plugin that is still stopping. Then an error that names it; the other one is not disturbed.
  Async<Result<void>> open(Duration patience);
  // Accepts, and watches the file, until cancelled. After open().
  Async<Result<void>> run();
  // Removes the file, if it is ours, and takes no more connections. Not while run() runs.
  void close();

  const std::string& path() const { return path_; }
  // Why nobody can reach us at the path, or "".
  const std::string& trouble() const { return trouble_; }

private:
  Async<Result<void>> accept_all();
  Async<Result<void>> watch();
  Result<void> listen_on(ListeningSocket socket);
  Result<void> listen_again();
  void restore();

  asio::any_io_executor executor_;
  Time& time_;
  std::string path_;
  std::string directory_;
  Accepted accepted_;
  ListeningSocket socket_;
  std::optional<asio::posix::stream_descriptor> ready_;  // a duplicate of socket_'s, to wait with
  std::string trouble_;
};

}  // namespace nvdra::dra
