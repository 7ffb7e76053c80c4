// HttpEndpoint: the role's own plain HTTP server, for /metrics, /healthz, /readyz and the like
// (cluster-side.md 4.13, W-C12). HTTP/1.1 with keep-alive; GET and HEAD only; no authentication.
//   * Any other method: 405; an unknown path: 404; what is not HTTP, or has a body: 400; a handler
//     that throws: 500, and an error in the log.
//   * Bounded: connections (beyond the limit the one that has been idle longest is closed), the
//   size
//     of a request's head, the time for it, for the answer, and between requests.
//   * Stop (cancellation of run()): listening ends first, an answer that is being sent is finished,
//     idle connections are closed.
#pragma once

#include "base/time.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace nvdra::k8s {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

struct HttpEndpointLimits {
  std::size_t connections = 64;
  std::size_t head = 16u << 10;  // bytes of a request
  Duration request = 10s;        // from its first byte, or from connecting, to its end
  Duration answer = 10s;
  Duration idle = 60s;  // between requests
};

class HttpEndpoint {
public:
  // Called on the loop, must not block. `query` is what follows '?', or "".
  using Handler = std::function<HttpReply(std::string_view query)>;

  // Listens at once. `address`: ":8080" (all addresses, IPv6 and IPv4), "127.0.0.1:0", "[::1]:80",
  // "localhost:80". `flag` is named in the errors: `cannot listen on :80 (--http-endpoint): …`.
  static Result<HttpEndpoint> listen(asio::any_io_executor executor, Time& time,
                                     const std::string& address, std::string_view flag,
                                     HttpEndpointLimits limits = {});

  HttpEndpoint(HttpEndpoint&&) noexcept;
  HttpEndpoint& operator=(HttpEndpoint&&) noexcept;
  ~HttpEndpoint();

  // The exact path, "/metrics". Before run().
  void on_get(std::string path, Handler handler);

  // Serves until cancelled. Once.
  Async<Result<void>> run();

  // With the port that the system has chosen for port 0.
  std::uint16_t port() const;
  std::size_t connections() const;

private:
  class Server;
  explicit HttpEndpoint(std::unique_ptr<Server> server);
  std::unique_ptr<Server> server_;
};

}  // namespace nvdra::k8s
