// One connection to the API server: TCP, TLS if asked for, bytes. Not an interface of the folder:
// the transport's own.
#pragma once

#include "base/time.hpp"
#include "k8s/http_answer.hpp"

#include <memory>
#include <string>

namespace nvdra::k8s {

class Tls;

// Where to connect, and for how long to try.
struct Server {
  std::string host;
  std::string port;
  const Tls* tls = nullptr;  // nullptr: plain HTTP
  Duration limit{};

  std::string text() const;  // "10.0.0.1:6443", "[::1]:6443"
};

class Connection {
public:
  // Tries the addresses of the host one after the other. Errors: not_sent, "connect
  // 10.0.0.1:6443: Connection refused".
  static Async<Result<std::unique_ptr<Connection>>> open(Server server, Time* time);
  ~Connection();

  // Neither closed nor holding bytes that nobody asked for: fit for another request.
  bool quiet() const;
  // Errors: disconnected; not_sent when not one byte has left.
  Async<Result<void>> write(std::string bytes);
  // Waits for bytes and gives them to `answer`. Errors: disconnected, malformed_answer.
  Async<Result<void>> read_into(HttpAnswerParser& answer);

private:
  struct Wire;
  explicit Connection(std::unique_ptr<Wire> wire, std::string where);
  Failure lost(Errc code, const std::string& why) const;

  std::unique_ptr<Wire> wire_;
  std::string where_;
  std::string unparsed_;
};

}  // namespace nvdra::k8s
