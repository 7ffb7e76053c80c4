// RFC 6455, the server's side: just what `kubectl exec` needs.
#pragma once

#include "sandbox/api_http.hpp"

namespace nvdra::sandbox {

class WebSocket {
public:
  // Answers the upgrade request. `protocol` is the sub-protocol that was chosen.
  static Async<Result<void>> accept(Connection& connection, const Request& request,
                                    std::string protocol);

  explicit WebSocket(Connection& connection) : connection_(connection) {}

  // The payload of the next data message; nullopt when the client has closed. Pings are answered.
  Async<Result<std::optional<std::string>>> read();
  // Several coroutines may write; messages keep their order.
  Async<Result<void>> write(std::string payload);
  // The closing handshake's first half.
  Async<Result<void>> close();

private:
  struct Frame {
    int opcode;
    bool last;
    std::string payload;
  };
  std::optional<Frame> take_frame();
  Async<Result<void>> send(int opcode, std::string payload);

  Connection& connection_;
  std::string buffered_;
  std::string unsent_;
  bool sending_ = false;
};

// The value of Sec-WebSocket-Accept for a client's key.
std::string websocket_accept(std::string_view key);

}  // namespace nvdra::sandbox
