#include "k8s/http_endpoint.hpp"

#include "catch.hpp"
#include "fake/captured_log.hpp"
#include "fake/time.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>

#include <list>
#include <stdexcept>

using namespace nvdra;
using namespace nvdra::k8s;
using asio::ip::tcp;

namespace {

// The other end of one connection: real bytes over the loopback.
struct Peer {
  tcp::socket socket;
  std::string got = {};
  bool closed = false;
  char piece[4096] = {};

  Peer(asio::io_context& loop, std::uint16_t port) : socket(loop) {
    socket.connect({asio::ip::address_v4::loopback(), port});
    read();
  }
  void read() {
    socket.async_read_some(asio::buffer(piece), [this](auto failed, std::size_t n) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) {
        closed = true;
        return;
      }
      got.append(piece, n);
      read();
    });
  }
  void send(std::string_view text) { asio::write(socket, asio::buffer(text.data(), text.size())); }
  bool has(std::string_view text) const { return got.find(text) != std::string::npos; }
};

// Real sockets, but the server's limits pass only when the test says so.
struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  HttpEndpoint endpoint;
  asio::cancellation_signal stop;
  bool ended = false;
  std::list<Peer> peers;

  explicit World(HttpEndpointLimits limits = {}) : endpoint(open(limits)) {
    endpoint.on_get("/healthz", [](std::string_view) { return HttpReply{.body = "ok\n"}; });
    endpoint.on_get("/metrics", [](std::string_view query) {
      return HttpReply{.content_type = "text/plain; version=0.0.4",
                       .body = "up 1\n# " + std::string(query) + "\n"};
    });
    endpoint.on_get("/broken",
                    [](std::string_view) -> HttpReply { throw std::logic_error("bug"); });
    endpoint.on_get("/large",
                    [](std::string_view) { return HttpReply{.body = std::string(8u << 20, 'x')}; });
    asio::co_spawn(loop, endpoint.run(),
                   asio::bind_cancellation_slot(
                       stop.slot(), [this](std::exception_ptr, Result<void>) { ended = true; }));
    time.settle();
  }
  ~World() {
    stop.emit(asio::cancellation_type::terminal);
    peers.clear();
    until([this] { return ended; });
  }
  HttpEndpoint open(HttpEndpointLimits limits) {
    Result<HttpEndpoint> opened =
        HttpEndpoint::listen(loop.get_executor(), time, "127.0.0.1:0", "--http", limits);
    REQUIRE(opened);
    return *std::move(opened);
  }
  Peer& connect(std::string_view text = {}) {
    Peer& peer = peers.emplace_back(loop, endpoint.port());
    if (!text.empty()) peer.send(text);
    return peer;
  }
  template <class Condition>
  bool until(Condition condition) {
    Instant deadline = Clock::now() + 10s;
    while (!condition() && Clock::now() < deadline) {
      loop.restart();
      loop.run_one_for(50ms);
    }
    return condition();
  }
  // Whether it stays so once everything that can happen has happened.
  template <class Condition>
  bool stays(Condition condition) {
    for (int i = 0; i < 5; ++i) {
      loop.restart();
      loop.run_one_for(10ms);
    }
    return condition();
  }
};

bool refused_to_listen(const std::string& address) {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  return !HttpEndpoint::listen(loop.get_executor(), time, address, "--http");
}

}  // namespace

TEST_CASE("a page is served with its type and length, and the connection stays open",
          "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& peer = w.connect("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(w.until([&] { return peer.has("ok\n"); }));
  CHECK(peer.got.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(peer.has("Content-Type: text/plain; charset=utf-8\r\n"));
  CHECK(peer.has("Content-Length: 3\r\n"));
  peer.send("GET /metrics?name=up HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(w.until([&] { return peer.has("up 1\n# name=up\n"); }));
  CHECK(peer.has("Content-Type: text/plain; version=0.0.4\r\n"));
  CHECK_FALSE(peer.closed);
}

TEST_CASE("requests that arrive together are answered in order", "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& peer =
      w.connect("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(w.until([&] { return peer.has("404 page not found\n"); }));
  CHECK(peer.got.find("200 OK") < peer.got.find("404 Not Found"));
}

TEST_CASE("a request that arrives in pieces is answered", "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& peer = w.connect("GET /hea");
  CHECK(w.stays([&] { return peer.got.empty() && w.endpoint.connections() == 1; }));
  peer.send("lthz HTTP/1.1\r\nHost: x\r");
  CHECK(w.stays([&] { return peer.got.empty(); }));
  peer.send("\n\r\n");
  CHECK(w.until([&] { return peer.has("ok\n"); }));
}

TEST_CASE("requests that get no page", "[loopback][k8s][http_endpoint]") {
  struct Row {
    const char* why;
    std::string request;
    const char* status;
    const char* also;
    bool closes;
  };
  const Row row = GENERATE(values<Row>({
      {"unknown path", "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", "404 Not Found", "", false},
      {"a path that only begins like one", "GET /healthz/x HTTP/1.1\r\n\r\n", "404", "", false},
      {"a method that changes things", "DELETE /healthz HTTP/1.1\r\n\r\n", "405 Method Not Allowed",
       "Allow: GET, HEAD\r\n", false},
      {"a body", "POST /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405", "", true},
      {"a GET with a body", "GET /healthz HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "400", "",
       true},
      {"no HTTP", "\x16\x03\x01 hello\r\n\r\n", "400 Bad Request", "", true},
      {"a head without end", "GET / HTTP/1.1\r\nX: " + std::string(20000, 'x'), "431", "", true},
      {"a handler that throws", "GET /broken HTTP/1.1\r\n\r\n", "500 Internal Server Error", "",
       false},
      {"the client closes", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", "200",
       "Connection: close\r\n", true},
      {"HTTP/1.0", "GET /healthz HTTP/1.0\r\n\r\n", "200", "Connection: close\r\n", true},
      {"HTTP/1.0 that stays", "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200",
       "Connection: keep-alive\r\n", false},
  }));
  INFO(row.why);
  fake::CapturedLog log;
  World w;
  Peer& peer = w.connect(row.request);
  REQUIRE(w.until([&] { return peer.has("\r\n\r\n"); }));
  INFO(peer.got);
  CHECK(peer.got.starts_with(std::string("HTTP/1.1 ") + row.status));
  CHECK(peer.has(row.also));
  if (row.closes) {
    CHECK(w.until([&] { return peer.closed; }));
  } else {
    CHECK(w.stays([&] { return !peer.closed; }));
  }
}

TEST_CASE("HEAD is answered like GET, without the body", "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& peer = w.connect("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(w.until([&] { return peer.has("\r\n\r\n"); }));
  CHECK(peer.has("Content-Length: 3\r\n"));
  CHECK(w.stays([&] { return !peer.has("ok"); }));
}

TEST_CASE("a request that is not complete in time is given up", "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& silent = w.connect();
  Peer& slow = w.connect("GET /he");
  REQUIRE(w.until([&] { return w.endpoint.connections() == 2; }));
  CHECK(w.stays([&] { return !silent.closed && !slow.closed; }));
  w.time.advance(9s);
  slow.send("a");
  CHECK(w.stays([&] { return !silent.closed && !slow.closed; }));
  w.time.advance(1s);
  CHECK(w.until([&] { return silent.closed && slow.closed; }));
  CHECK(w.endpoint.connections() == 0);
}

TEST_CASE("a kept connection is closed after a minute without a request",
          "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& peer = w.connect("GET /healthz HTTP/1.1\r\n\r\n");
  REQUIRE(w.until([&] { return peer.has("ok\n"); }));
  w.time.advance(59s);
  CHECK(w.stays([&] { return !peer.closed; }));
  w.time.advance(1s);
  CHECK(w.until([&] { return peer.closed; }));
}

TEST_CASE("an answer that nobody reads is given up", "[loopback][k8s][http_endpoint]") {
  World w;
  tcp::socket deaf(w.loop);
  deaf.connect({asio::ip::address_v4::loopback(), w.endpoint.port()});
  std::string_view request = "GET /large HTTP/1.1\r\n\r\n";
  asio::write(deaf, asio::buffer(request.data(), request.size()));
  REQUIRE(w.until([&] { return w.endpoint.connections() == 1; }));
  CHECK(w.stays([&] { return w.endpoint.connections() == 1; }));
  w.time.advance(10s);
  CHECK(w.until([&] { return w.endpoint.connections() == 0; }));
}

TEST_CASE("beyond the limit the connection that has been idle longest makes room",
          "[loopback][k8s][http_endpoint]") {
  World w({.connections = 3});
  std::vector<Peer*> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(&w.connect("GET /healthz HTTP/1.1\r\n\r\n"));
    REQUIRE(w.until([&] { return peers.back()->has("ok\n"); }));
    w.time.advance(1s);
  }
  peers[0]->send("GET /metrics HTTP/1.1\r\n\r\n");  // is the youngest again
  REQUIRE(w.until([&] { return peers[0]->has("up 1\n"); }));
  Peer& late = w.connect("GET /healthz HTTP/1.1\r\n\r\n");
  CHECK(w.until([&] { return late.has("ok\n") && peers[1]->closed; }));
  CHECK_FALSE(peers[0]->closed);
  CHECK_FALSE(peers[2]->closed);
}

TEST_CASE("unfinished requests on every connection do not keep a new one out",
          "[loopback][k8s][http_endpoint]") {
  World w({.connections = 3});
  for (int i = 0; i < 3; ++i) {
    w.connect("GET /slow");
    REQUIRE(w.until([&] { return w.endpoint.connections() == std::size_t(i) + 1; }));
    w.time.advance(1s);
  }
  Peer& late = w.connect("GET /healthz HTTP/1.1\r\n\r\n");
  CHECK(w.until([&] { return late.has("ok\n") && w.peers.front().closed; }));
}

TEST_CASE("at its end an answer that is being sent is finished, idle connections are closed",
          "[loopback][k8s][http_endpoint]") {
  World w;
  Peer& idle = w.connect("GET /healthz HTTP/1.1\r\n\r\n");
  REQUIRE(w.until([&] { return idle.has("ok\n"); }));
  tcp::socket slow(w.loop);
  slow.connect({asio::ip::address_v4::loopback(), w.endpoint.port()});
  std::string_view request = "GET /large HTTP/1.1\r\n\r\n";
  asio::write(slow, asio::buffer(request.data(), request.size()));
  REQUIRE(w.until([&] { return w.endpoint.connections() == 2; }));
  CHECK(w.stays([&] { return !w.ended; }));

  w.stop.emit(asio::cancellation_type::terminal);
  REQUIRE(w.until([&] { return idle.closed; }));
  CHECK_FALSE(w.ended);
  tcp::socket refused(w.loop);
  boost::system::error_code failed;
  refused.connect({asio::ip::address_v4::loopback(), w.endpoint.port()}, failed);
  CHECK(failed == asio::error::connection_refused);

  std::size_t got = 0;
  bool closed = false;
  std::vector<char> piece(1u << 16);
  std::function<void()> read = [&] {
    slow.async_read_some(asio::buffer(piece), [&](auto error, std::size_t n) {
      got += n;
      if (error) {
        closed = true;
      } else {
        read();
      }
    });
  };
  read();
  CHECK(w.until([&] { return closed && w.ended; }));
  CHECK(got > (8u << 20));
}

TEST_CASE("an address in use is an error that names the address and the flag",
          "[loopback][k8s][http_endpoint]") {
  World w;
  std::string address = "127.0.0.1:" + std::to_string(w.endpoint.port());
  Result<HttpEndpoint> second =
      HttpEndpoint::listen(w.loop.get_executor(), w.time, address, "--http-endpoint");
  REQUIRE_FALSE(second);
  CHECK(second.error().text() ==
        "cannot listen on " + address + " (--http-endpoint): Address already in use");
}

TEST_CASE("addresses to listen on", "[loopback][k8s][http_endpoint]") {
  for (const char* good : {":0", "127.0.0.1:0", "localhost:0", "0.0.0.0:0"}) {
    INFO(good);
    CHECK_FALSE(refused_to_listen(good));
  }
  for (const char* bad : {"", "8080", ":", ":http", ":65536", ":-1", "::1:80", "[127.0.0.1]:80",
                          "[::1:80", "host.example:80", ":80 "}) {
    INFO(bad);
    CHECK(refused_to_listen(bad));
  }
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  Result<HttpEndpoint> refused = HttpEndpoint::listen(loop.get_executor(), time, "x", "--http");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() ==
        "\"x\" is no address to listen on (--http), expected \":8080\", \"127.0.0.1:8080\" or "
        "\"[::1]:8080\"");
}

TEST_CASE("all addresses means IPv4 too", "[loopback][k8s][http_endpoint]") {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  Result<HttpEndpoint> all = HttpEndpoint::listen(loop.get_executor(), time, ":0", "--http");
  REQUIRE(all);
  tcp::socket socket(loop);
  boost::system::error_code failed;
  socket.connect({asio::ip::address_v4::loopback(), all->port()}, failed);
  CHECK_FALSE(failed);
}
