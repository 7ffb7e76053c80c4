// HTTP/1.1 as the server sees it: requests in, answers and chunked streams out, one connection.
#pragma once

#include "base/async.hpp"
#include "base/time.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::sandbox {

struct Request {
  std::string method;
  std::vector<std::string> path;  // decoded segments
  std::multimap<std::string, std::string, std::less<>> query;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;

  std::string header(std::string_view name) const;
  // The first value of the parameter, or "".
  std::string parameter(std::string_view name) const;
  bool flag(std::string_view name) const;  // "true" or "1"
  std::string path_text() const;           // "/api/v1/pods"
};

struct Answer {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers = {};
};

// "a%20b" → "a b"; with `plus`, '+' is a blank, too.
std::string percent_decoded(std::string_view text, bool plus);

class Connection {
public:
  explicit Connection(asio::ip::tcp::socket socket);
  ~Connection();

  // nullopt when the client has closed the connection between two requests.
  Async<Result<std::optional<Request>>> read_request();
  Async<Result<void>> write(Answer answer);
  // Sends the header and half of the body, then closes: a connection that broke in the middle.
  Async<Result<void>> write_half(Answer answer);
  // True when the client asked to keep the connection for more requests.
  bool keeps() const { return keep_; }

  // A chunked body of unknown length. The connection is closed after its end.
  Async<Result<void>> begin_stream(int status, std::string content_type);
  Async<Result<void>> write_chunk(std::string bytes);
  Async<Result<void>> end_stream();

  // While a stream is written: rings when the client has gone or ring() is called, or at `until`.
  Async<void> wait_for_ring(Instant until);
  // Wakes wait_for_ring(); a ring before the wait is not lost. Safe after the connection's end.
  std::function<void()> ringer();
  bool client_gone() const;
  void close();

  // Raw bytes, for upgraded connections (api_websocket.hpp).
  Async<Result<std::string>> read_some();
  Async<Result<void>> write_raw(std::string bytes);

private:
  struct Bell;
  void listen_for_close();

  asio::ip::tcp::socket socket_;
  std::string buffered_;
  bool keep_ = true;
  bool listening_ = false;
  std::shared_ptr<Bell> bell_;
};

}  // namespace nvdra::sandbox
