// A loop, a server of the test's own and a transport that talks to it, for the tests of
// k8s/http_transport.hpp.
#pragma once

#include "base/task_group.hpp"
#include "base/within.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"
#include "k8s/http_server.hpp"
#include "k8s/http_transport.hpp"
#include "k8s/status.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace nvdra::k8s::test {

using fake::HttpServer;
using fake::ok_answer;
using fake::SessionPtr;

// A loop, a server of the test, and a transport that talks to it.
struct World {
  asio::io_context loop{1};
  RealTime time;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<Transport> transport;
  Config config;

  void serve(HttpServer::Handler handler, std::optional<fake::ServerTls> tls = {}) {
    config.tls = tls.has_value();
    config.host = "127.0.0.1";
    server = std::make_unique<HttpServer>(loop, std::move(handler), std::move(tls));
    config.port = server->port();
  }
  void connect(HttpLimits limits = {}) {
    auto made = make_http_transport(loop.get_executor(), time, config, limits);
    REQUIRE(made);
    transport = *std::move(made);
  }
  Result<HttpAnswer> send(HttpRequest request) {
    return fake::run(loop, transport->send(std::move(request)));
  }
  Result<HttpAnswer> get(std::string target = "/x") {
    return send({.method = "GET", .target = std::move(target)});
  }
  Result<OpenAnswer> open() {
    return fake::run(loop, transport->open({.method = "GET", .target = "/watch"}));
  }
  Result<std::string> read(BodyStream& stream, Duration idle = 5s) {
    return fake::run(loop, stream.read_some(idle));
  }
  // Lets the server's coroutines run until `condition`.
  void until(std::function<bool()> condition) {
    auto wait = [](std::function<bool()> reached, Time* clock) -> Async<bool> {
      while (!reached()) co_await clock->sleep(1ms);
      co_return true;
    };
    fake::run(loop, wait(std::move(condition), &time));
  }
};

// A clock that can be put forward, so that the token file is looked at again at once.
class ShiftedTime final : public Time {
public:
  Instant now() const override { return real_.now() + ahead; }
  WallClock::time_point wall() const override { return real_.wall(); }
  Async<void> sleep(Duration length) override { return real_.sleep(length); }
  Duration ahead{};

private:
  RealTime real_;
};

// Answers every request with `answer` and notes it in `seen`.
inline HttpServer::Handler answering(std::string answer, std::vector<std::string>* seen = nullptr) {
  return [answer, seen](SessionPtr session) -> Async<void> {
    for (;;) {
      std::optional<std::string> request = co_await session->request();
      if (!request) co_return;
      if (seen) seen->push_back(*request);
      co_await session->write(answer);
    }
  };
}

// Reads requests and never answers.
inline Async<void> silent(SessionPtr session) {
  for (;;) {
    std::optional<std::string> request = co_await session->request();
    if (!request) co_return;
  }
}

// Sends `begin`, then nothing, but keeps the connection open.
inline HttpServer::Handler falling_silent(std::string begin) {
  return [begin](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    co_await session->write(begin);
    co_await silent(session);
  };
}

// Sends `bytes` piece by piece, each in its own packet, and closes.
inline HttpServer::Handler sending(std::vector<std::string> pieces) {
  return [pieces](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    RealTime time;
    for (const std::string& piece : pieces) {
      co_await session->write(piece);
      co_await time.sleep(2ms);
    }
  };
}

inline std::string all_of(World& world, BodyStream& stream) {
  std::string text;
  for (;;) {
    Result<std::string> more = world.read(stream);
    REQUIRE(more);
    if (more->empty()) return text;
    text += *more;
  }
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline constexpr const char* stream_head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

struct Authority {
  fake::Identity ca = fake::make_authority("test authority");
  fake::ServerTls server(const std::string& names = "IP:127.0.0.1,DNS:api.test") {
    return {fake::issue(ca, "server", names)};
  }
};

}  // namespace nvdra::k8s::test
