// An API server in the test's own loop, and a small HTTP client for it.
#pragma once

#include "fake/run_loop.hpp"
#include "sandbox/api_server.hpp"
#include "world.hpp"

#include <boost/asio/ip/tcp.hpp>

namespace nvdra::sandbox {

struct Reply {
  int status = 0;  // 0 = the connection ended before a whole answer
  std::string head;
  std::string body;
  Json object;  // the body, if it is JSON
};

// A connection whose answer never ends; text arrives without the framing of its chunks.
class Stream {
public:
  explicit Stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  // The next line; empty when the connection has ended.
  Async<std::string> line();

private:
  asio::ip::tcp::socket socket_;
  std::string raw_;
  std::string text_;
};

struct Served : World {
  explicit Served(Registry::Options options = {}, ApiServer::Options server_options = {});
  ~Served();

  std::unique_ptr<ApiServer> server;

  Reply call(std::string method, std::string target, std::string body = "",
             std::string type = "application/json", std::string accept = "application/json");
  std::unique_ptr<Stream> open(std::string target);
  std::string next_line(Stream& stream);
  Json next_event(Stream& stream) { return boost::json::parse(next_line(stream)); }

private:
  asio::cancellation_signal stop_;
  bool ended_ = false;
};

}  // namespace nvdra::sandbox
