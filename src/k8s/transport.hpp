// The edge of the world towards the API server: bytes of HTTP/1.1 requests and answers.
// Implementations: http_transport.hpp (sockets, TLS) and test/fake/transport.hpp (a script).
#pragma once

#include "base/time.hpp"

#include <memory>
#include <optional>
#include <string>

namespace nvdra::k8s {

struct HttpRequest {
  std::string method;             // "GET"
  std::string target;             // "/api/v1/nodes?limit=500"
  std::string content_type = {};  // of the body
  std::string body = {};
  Duration limit = 30s;  // for the whole exchange; for a stream: until its headers have come
  // Leases: a connection of their own, not counted in the bound on requests in flight.
  bool urgent = false;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::optional<Duration> retry_after = {};
};

// The body of an answer of any size, as it comes.
class BodyStream {
public:
  virtual ~BodyStream() = default;
  // Some bytes; empty at the end of the body. errc::timed_out after `idle` without a byte;
  // disconnected when the connection broke.
  virtual Async<Result<std::string>> read_some(Duration idle) = 0;
};

struct OpenAnswer {
  int status = 0;
  std::string body;  // of an error status
  std::optional<Duration> retry_after = {};
  std::unique_ptr<BodyStream> stream;  // of status 200
};

class Transport {
public:
  virtual ~Transport() = default;
  // Any HTTP status is a success here. Errors: not_sent, disconnected, errc::timed_out. A GET whose
  // kept-alive connection turns out to be dead is tried once more on a new one.
  virtual Async<Result<HttpAnswer>> send(HttpRequest request) = 0;
  virtual Async<Result<OpenAnswer>> open(HttpRequest request) = 0;
};

}  // namespace nvdra::k8s
