// A server of a test's own on loopback, port 0: TCP, TLS if asked for, one coroutine per
// connection.
#pragma once

#include "base/async.hpp"
#include "k8s/certificates.hpp"

#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::fake {

// One accepted connection, seen by the test's handler.
class Session {
public:
  virtual ~Session() = default;
  int number = 0;  // of the connection, from 1
  // The next request, head and body as they came; nullopt when the client has closed.
  virtual Async<std::optional<std::string>> request() = 0;
  virtual Async<void> write(std::string bytes) = 0;
  // Resets instead of an orderly end, when the session goes.
  virtual void reset_at_end() = 0;
};
using SessionPtr = std::shared_ptr<Session>;

struct ServerTls {
  Identity identity;
  std::string client_authority_pem = {};  // not empty: a client certificate is required
  bool old = false;                       // TLS 1.1 at most
};

class HttpServer {
public:
  // The connection ends when the handler does.
  using Handler = std::function<Async<void>(SessionPtr)>;

  HttpServer(asio::io_context& loop, Handler handler, std::optional<ServerTls> tls = {},
             const std::string& address = "127.0.0.1");
  ~HttpServer();

  const std::string& port() const { return port_; }
  int accepted() const;
  void stop();  // no more connections

private:
  struct State;
  std::shared_ptr<State> state_;
  std::string port_;
};

// "HTTP/1.1 200 OK" with a body and its length.
std::string ok_answer(const std::string& body);
std::string answer_text(const std::string& status_line, const std::string& headers,
                        const std::string& body);

}  // namespace nvdra::fake
