#include "k8s/http_transport.hpp"

#include "base/task_group.hpp"
#include "base/within.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"
#include "k8s/http_server.hpp"
#include "k8s/status.hpp"

#include <fmt/format.h>

#include <filesystem>

using namespace nvdra;
using namespace nvdra::k8s;
using fake::HttpServer;
using fake::ok_answer;
using fake::SessionPtr;

namespace {

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
HttpServer::Handler answering(std::string answer, std::vector<std::string>* seen = nullptr) {
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
Async<void> silent(SessionPtr session) {
  for (;;) {
    std::optional<std::string> request = co_await session->request();
    if (!request) co_return;
  }
}

// Sends `begin`, then nothing, but keeps the connection open.
HttpServer::Handler falling_silent(std::string begin) {
  return [begin](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    co_await session->write(begin);
    co_await silent(session);
  };
}

// Sends `bytes` piece by piece, each in its own packet, and closes.
HttpServer::Handler sending(std::vector<std::string> pieces) {
  return [pieces](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    RealTime time;
    for (const std::string& piece : pieces) {
      co_await session->write(piece);
      co_await time.sleep(2ms);
    }
  };
}

std::string all_of(World& world, BodyStream& stream) {
  std::string text;
  for (;;) {
    Result<std::string> more = world.read(stream);
    REQUIRE(more);
    if (more->empty()) return text;
    text += *more;
  }
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

const char* const stream_head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

struct Authority {
  fake::Identity ca = fake::make_authority("test authority");
  fake::ServerTls server(const std::string& names = "IP:127.0.0.1,DNS:api.test") {
    return {fake::issue(ca, "server", names)};
  }
};

}  // namespace

TEST_CASE("a request says who we are and what we want", "[k8s][http][loopback]") {
  World w;
  std::vector<std::string> seen;
  w.serve(answering(ok_answer("{}"), &seen));
  w.config.token = "secret\n";
  w.config.path_prefix = "/clusters/a";
  w.connect();
  Result<HttpAnswer> answer = w.send({.method = "POST",
                                      .target = "/api/v1/pods?x=y",
                                      .content_type = "application/json",
                                      .body = "{\"a\":1}"});
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(answer->body == "{}");
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == fmt::format("POST /clusters/a/api/v1/pods?x=y HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n"
                               "User-Agent: nvdra\r\nAccept: application/json\r\n"
                               "Authorization: Bearer secret\r\nContent-Type: application/json\r\n"
                               "Content-Length: 7\r\n\r\n{{\"a\":1}}",
                               w.config.port));
}

TEST_CASE("a connection is kept alive and used again", "[k8s][http][loopback]") {
  World w;
  w.serve(answering(ok_answer("body")));
  w.connect();
  for (int i = 0; i < 3; ++i) {
    Result<HttpAnswer> answer = w.get();
    REQUIRE(answer);
    CHECK(answer->body == "body");
  }
  CHECK(w.server->accepted() == 1);
}

TEST_CASE("a connection that the server wants closed is not used again", "[k8s][http][loopback]") {
  World w;
  w.serve(answering(fake::answer_text("200 OK", "Connection: close\r\n", "")));
  w.connect();
  CHECK(w.get());
  CHECK(w.get());
  CHECK(w.server->accepted() == 2);
}

TEST_CASE("status and Retry-After of a refusal come through, interim answers do not",
          "[k8s][http][loopback]") {
  World w;
  w.serve(answering("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
                    fake::answer_text("429 Too Many Requests", "Retry-After: 7\r\n", "later")));
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE(answer);
  CHECK(answer->status == 429);
  CHECK(answer->body == "later");
  CHECK(answer->retry_after == Duration(7s));
  Result<OpenAnswer> opened = w.open();
  REQUIRE(opened);
  CHECK(opened->status == 429);
  CHECK(opened->body == "later");
  CHECK(opened->retry_after == Duration(7s));
  CHECK_FALSE(opened->stream);
}

TEST_CASE("a kept connection that was closed meanwhile is not used, for any method",
          "[k8s][http][loopback]") {
  World w;
  std::vector<std::string> seen;
  int ended = 0;
  w.serve([&](SessionPtr session) -> Async<void> {  // one answer per connection
    std::optional<std::string> request = co_await session->request();
    if (request) seen.push_back(*request);
    co_await session->write(ok_answer("{}"));
    ++ended;
  });
  w.connect();
  REQUIRE(w.get());
  w.until([&] { return ended == 1; });
  Result<HttpAnswer> answer = w.send({.method = "POST", .target = "/y", .body = "{}"});
  REQUIRE(answer);
  CHECK(seen.size() == 2);
  CHECK(w.server->accepted() == 2);
}

TEST_CASE("a kept connection that dies under a request: a GET is repeated, a POST is not",
          "[k8s][http][loopback]") {
  World w;
  std::vector<std::string> seen;
  bool reset = GENERATE(false, true);
  w.serve([&](SessionPtr session) -> Async<void> {  // the second request kills the connection
    std::optional<std::string> request = co_await session->request();
    seen.push_back(request->substr(0, request->find(' ')));
    co_await session->write(ok_answer("{}"));
    request = co_await session->request();
    if (request) seen.push_back(request->substr(0, request->find(' ')));
    if (reset) session->reset_at_end();
  });
  w.connect();
  REQUIRE(w.get());
  SECTION("GET") {
    Result<HttpAnswer> answer = w.get();
    CHECK(answer);
    CHECK(seen == std::vector<std::string>{"GET", "GET", "GET"});
    CHECK(w.server->accepted() == 2);
  }
  SECTION("POST") {
    Result<HttpAnswer> answer = w.send({.method = "POST", .target = "/y", .body = "{}"});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == Errc::disconnected);
    CHECK(has(answer.error().text(), "127.0.0.1:" + w.config.port));
    CHECK(seen == std::vector<std::string>{"GET", "POST"});
  }
}

TEST_CASE("a fresh connection that dies is an error even for a GET", "[k8s][http][loopback]") {
  World w;
  w.serve([](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
  });
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::disconnected);
  CHECK(w.server->accepted() == 1);
}

TEST_CASE("an answer that is cut off is a lost connection, something else is malformed",
          "[k8s][http][loopback]") {
  struct Row {
    const char* bytes;
    Errc expected;
  };
  const Row row = GENERATE(values<Row>({
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", Errc::disconnected},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha", Errc::disconnected},
      {"HTTP/1.1 200 O", Errc::disconnected},
      {"SSH-2.0-OpenSSH\r\n\r\n", Errc::malformed_answer},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", Errc::malformed_answer},
  }));
  INFO(row.bytes);
  World w;
  w.serve(sending({row.bytes}));
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == row.expected);
}

TEST_CASE("a body without a length ends with the connection", "[k8s][http][loopback]") {
  World w;
  w.serve(sending({"HTTP/1.1 200 OK\r\n\r\n", "one ", "two"}));
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE(answer);
  CHECK(answer->body == "one two");
}

TEST_CASE("nobody listening is an error that names address and reason", "[k8s][http][loopback]") {
  World w;
  w.serve(answering(""));
  w.server->stop();
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::not_sent);
  CHECK(answer.error().text().starts_with("connect 127.0.0.1:" + w.config.port +
                                          ": Connection refused"));
}

TEST_CASE("headers that do not come in time are a time-out", "[k8s][http][loopback]") {
  std::string begin = GENERATE("", "HTTP/1.1 200 OK\r\nContent-Le");
  World w;
  w.serve(falling_silent(begin));
  w.connect();
  Result<HttpAnswer> answer = w.send({.method = "GET", .target = "/", .limit = 50ms});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == boost::system::errc::timed_out);
  CHECK(has(answer.error().text(), "no answer from 127.0.0.1:" + w.config.port + " within 0.05 s"));
  Result<OpenAnswer> opened =
      fake::run(w.loop, w.transport->open({.method = "GET", .target = "/", .limit = 50ms}));
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == boost::system::errc::timed_out);
}

TEST_CASE("a body that stalls is a time-out of the whole exchange", "[k8s][http][loopback]") {
  World w;
  w.serve(falling_silent("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"));
  w.connect();
  Result<HttpAnswer> answer = w.send({.method = "GET", .target = "/", .limit = 50ms});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == boost::system::errc::timed_out);
}

TEST_CASE("a stream hands out bytes as they come, chunked or not", "[k8s][http][loopback]") {
  World w;
  SECTION("chunked, borders inside of packets and packets inside of chunks") {
    w.serve(sending({"HTTP/1.1 200 OK\r\nTransfer-Enc", "oding: chunked\r\n\r\n3\r\non", "e\r\n5",
                     "\r\n two \r\n5;x=y\r\nthree\r\n", "0\r\n\r\n"}));
  }
  SECTION("until the connection ends") {
    w.serve(sending({"HTTP/1.1 200 OK\r\n\r\none", " two ", "three"}));
  }
  SECTION("with a length") {
    w.serve(sending({"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\none", " two three"}));
  }
  w.connect();
  Result<OpenAnswer> opened = w.open();
  REQUIRE(opened);
  REQUIRE(opened->stream);
  CHECK(all_of(w, *opened->stream) == "one two three");
  Result<std::string> after = w.read(*opened->stream);
  REQUIRE(after);
  CHECK(after->empty());
}

TEST_CASE("many short streams leave no descriptor behind", "[k8s][http][loopback]") {
  auto descriptors = [] {
    std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  World w;
  w.serve(sending({"HTTP/1.1 200 OK\r\n\r\nevent"}));
  w.connect();
  std::ptrdiff_t before = 0;
  for (int number = 0; number < 2000; ++number) {
    Result<OpenAnswer> opened = w.open();
    REQUIRE(opened);
    // Every other one is left before its end.
    if (number % 2 == 0) REQUIRE(all_of(w, *opened->stream) == "event");
    if (number == 9) before = descriptors();
  }
  w.until([&] { return descriptors() <= before; });
  CHECK(w.server->accepted() == 2000);
}

TEST_CASE("the first event is there before the second one is sent", "[k8s][http][loopback]") {
  World w;
  bool go_on = false;
  w.serve([&](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    co_await session->write(std::string(stream_head) + "4\r\none\n\r\n");
    RealTime time;
    while (!go_on) co_await time.sleep(1ms);
    co_await session->write("4\r\ntwo\n\r\n0\r\n\r\n");
  });
  w.connect();
  Result<OpenAnswer> opened = w.open();
  REQUIRE(opened);
  Result<std::string> first = w.read(*opened->stream);
  REQUIRE(first);
  CHECK(*first == "one\n");
  go_on = true;
  CHECK(all_of(w, *opened->stream) == "two\n");
}

TEST_CASE("a stream that falls silent times out, and stays failed", "[k8s][http][loopback]") {
  Authority a;
  bool tls = GENERATE(false, true);
  INFO(tls);
  World w;
  w.serve(falling_silent(std::string(stream_head) + "3\r\none\r\n"),
          tls ? std::optional(a.server()) : std::nullopt);
  w.config.ca_pem = a.ca.certificate_pem;
  w.connect();
  Result<OpenAnswer> opened = w.open();
  REQUIRE(opened);
  Result<std::string> first = w.read(*opened->stream);
  REQUIRE(first);
  CHECK(*first == "one");
  Result<std::string> second = w.read(*opened->stream, 50ms);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == boost::system::errc::timed_out);
  Result<std::string> third = w.read(*opened->stream, 50ms);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == Errc::disconnected);
}

TEST_CASE("a stream that is cut inside a chunk is a lost connection", "[k8s][http][loopback]") {
  World w;
  w.serve(sending({std::string(stream_head) + "30\r\none"}));
  w.connect();
  Result<OpenAnswer> opened = w.open();
  REQUIRE(opened);
  Result<std::string> first = w.read(*opened->stream);
  REQUIRE(first);
  Result<std::string> second = w.read(*opened->stream);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == Errc::disconnected);
}

TEST_CASE("bodies of 20 MB come whole, and go whole", "[k8s][http][loopback]") {
  std::string big(20u << 20, 'x');
  for (std::size_t i = 0; i < big.size(); i += 4096)
    big[i] = static_cast<char>('a' + i / 4096 % 26);
  Authority a;
  bool tls = GENERATE(false, true);
  World w;
  std::vector<std::string> seen;
  w.serve(answering(ok_answer(big), &seen), tls ? std::optional(a.server()) : std::nullopt);
  w.config.ca_pem = a.ca.certificate_pem;
  w.connect();
  Result<HttpAnswer> answer = w.send({.method = "POST", .target = "/", .body = big});
  REQUIRE(answer);
  CHECK((answer->body == big));
  CHECK((seen.at(0).ends_with(big)));
}

TEST_CASE("a body above the limit is refused without reading it to its end",
          "[k8s][http][loopback]") {
  World w;
  w.serve(answering(ok_answer(std::string(4096, 'x'))));
  w.connect({.body = 1000});
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::malformed_answer);
}

TEST_CASE("requests above the bound wait their turn in order; urgent ones and streams do not",
          "[k8s][http][loopback]") {
  World w;
  std::vector<std::string> begun;
  int open = 0, most = 0;
  bool answer_now = false;
  w.serve([&](SessionPtr session) -> Async<void> {
    RealTime time;
    for (;;) {
      std::optional<std::string> request = co_await session->request();
      if (!request) co_return;
      std::string target = request->substr(4, request->find(" HTTP") - 4);
      begun.push_back(target);
      bool counted = target.starts_with("/n");
      most = std::max(most, open += counted ? 1 : 0);
      while (counted && !answer_now) co_await time.sleep(1ms);
      open -= counted ? 1 : 0;
      co_await session->write(ok_answer(""));
    }
  });
  w.connect({.in_flight = 2});
  TaskGroup group(w.loop.get_executor());
  auto ask = [](Transport* transport, std::string target) -> Async<Result<void>> {
    Result<HttpAnswer> answer =
        co_await transport->send({.method = "GET", .target = std::move(target)});
    if (!answer) co_return std::move(answer).failure();
    co_return ok();
  };
  for (int i = 0; i < 6; ++i) group.spawn("ask", ask(w.transport.get(), fmt::format("/n{}", i)));
  w.until([&] { return begun.size() == 2; });
  Result<HttpAnswer> urgent = w.send({.method = "GET", .target = "/lease", .urgent = true});
  CHECK(urgent);
  Result<OpenAnswer> stream = w.open();
  CHECK(stream);
  CHECK(begun == std::vector<std::string>{"/n0", "/n1", "/lease", "/watch"});

  answer_now = true;
  Result<void> joined = fake::run(w.loop, group.join());
  CHECK(joined);
  CHECK(most == 2);
  CHECK(std::vector<std::string>(begun.begin() + 4, begun.end()) ==
        std::vector<std::string>{"/n2", "/n3", "/n4", "/n5"});
}

TEST_CASE("a request cancelled while it waits or runs makes room for the next one",
          "[k8s][http][loopback]") {
  World w;
  bool quick = false;
  w.serve([&](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    if (!quick) co_await silent(session);
    co_await session->write(ok_answer("now"));
  });
  w.connect({.in_flight = 1});
  auto ask = [](Transport* transport) -> Async<Result<void>> {
    Result<HttpAnswer> answer = co_await transport->send({.method = "GET", .target = "/"});
    if (!answer) co_return std::move(answer).failure();
    co_return ok();
  };
  TaskGroup group(w.loop.get_executor());
  for (int i = 0; i < 3; ++i) group.spawn("ask", ask(w.transport.get()));
  w.until([&] { return w.server->accepted() == 1; });
  group.stop();
  Result<void> joined = fake::run(w.loop, group.join());
  CHECK(joined);
  quick = true;
  Result<HttpAnswer> answer = w.get();
  REQUIRE(answer);
  CHECK(answer->body == "now");
}

TEST_CASE("an idle connection is closed after its time", "[k8s][http][loopback]") {
  World w;
  int closed = 0;
  w.serve([&](SessionPtr session) -> Async<void> {
    std::optional<std::string> request = co_await session->request();
    co_await session->write(ok_answer(""));
    request = co_await session->request();
    if (!request) ++closed;
  });
  w.connect({.idle = 30ms});
  REQUIRE(w.get());
  w.until([&] { return closed == 1; });
  CHECK(closed == 1);
}

TEST_CASE("IPv6 addresses work and stand in brackets", "[k8s][http][loopback]") {
  Authority a;
  World w;
  std::vector<std::string> seen;
  w.server = std::make_unique<HttpServer>(w.loop, answering(ok_answer("six"), &seen),
                                          a.server("IP:::1"), "::1");
  w.config.host = "::1";
  w.config.port = w.server->port();
  w.config.ca_pem = a.ca.certificate_pem;
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE(answer);
  CHECK(answer->body == "six");
  CHECK(has(seen.at(0), "Host: [::1]:" + w.config.port + "\r\n"));
  w.server->stop();
  w.connect();
  Result<HttpAnswer> refused = w.get();
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error().text(), "connect [::1]:" + w.config.port + ": Connection refused"));
}

TEST_CASE("a name from /etc/hosts is found, also in a static program", "[k8s][http][loopback]") {
  World w;
  w.serve(answering(ok_answer("by name")));
  w.config.host = "localhost";
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE(answer);
  CHECK(answer->body == "by name");
}

TEST_CASE("the certificate must be for the address or name that was asked for",
          "[k8s][http][tls][loopback]") {
  struct Row {
    const char* why;
    const char* certified;
    const char* server_name;
    bool good;
  };
  const Row row = GENERATE(values<Row>({
      {"its address", "IP:127.0.0.1", "", true},
      {"another address", "IP:127.0.0.2", "", false},
      {"an address written as a name", "DNS:127.0.0.1", "", false},
      {"the name that was set", "DNS:api.test", "api.test", true},
      {"a wildcard", "DNS:*.cluster.test", "api.cluster.test", true},
      {"another name", "DNS:api.test", "other.test", false},
      {"only the address, but a name was set", "IP:127.0.0.1", "api.test", false},
      {"another address that was set", "IP:10.0.0.1", "10.0.0.1", true},
      {"an IPv6 address that was set", "IP:fd00::1", "fd00::1", true},
  }));
  INFO(row.why);
  Authority a;
  World w;
  w.serve(answering(ok_answer("")), a.server(row.certified));
  w.config.ca_pem = a.ca.certificate_pem;
  w.config.server_name = row.server_name;
  w.connect();
  Result<HttpAnswer> answer = w.get();
  CHECK(answer.has_value() == row.good);
  if (!answer) {
    CHECK(answer.error().code == Errc::not_sent);
    std::string name = *row.server_name ? row.server_name : "127.0.0.1";
    CHECK(has(answer.error().text(), fmt::format("connect 127.0.0.1:{}: TLS: ", w.config.port)));
    CHECK(has(answer.error().text(), "is not accepted for " + name + ": "));
    CHECK(has(answer.error().text(), "mismatch"));
  }
}

TEST_CASE("only the configured authority is believed", "[k8s][http][tls][loopback]") {
  Authority a, other;
  World w;
  w.serve(answering(ok_answer("")), a.server());
  SECTION("another one") {
    w.config.ca_pem = other.ca.certificate_pem;
    w.connect();
    Result<HttpAnswer> answer = w.get();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == Errc::not_sent);
    CHECK(has(answer.error().text(), "is not accepted"));
  }
  SECTION("one of several of the same name, as during a rotation") {
    w.config.ca_pem = other.ca.certificate_pem + a.ca.certificate_pem;
    w.connect();
    CHECK(w.get());
  }
  SECTION("the server's certificate itself") {
    fake::ServerTls own = a.server();
    w.config.ca_pem = own.identity.certificate_pem;
    w.serve(answering(ok_answer("")), own);
    w.connect();
    CHECK(w.get());
  }
  SECTION("none at all, when verification is switched off") {
    w.config.verify = false;
    w.connect();
    CHECK(w.get());
  }
}

TEST_CASE("a server that wants a client certificate gets ours", "[k8s][http][tls][loopback]") {
  Authority a;
  World w;
  fake::ServerTls tls = a.server();
  tls.client_authority_pem = a.ca.certificate_pem;
  w.serve(answering(ok_answer("")), tls);
  w.config.ca_pem = a.ca.certificate_pem;
  SECTION("with one") {
    fake::Identity me = fake::issue(a.ca, "me", "");
    w.config.client_certificate_pem = me.certificate_pem;
    w.config.client_key_pem = me.key_pem;
    w.connect();
    CHECK(w.get());
  }
  SECTION("without one") {
    w.connect();
    Result<HttpAnswer> answer = w.get();
    REQUIRE_FALSE(answer);
    CHECK(has(answer.error().text(), "certificate required"));
  }
}

TEST_CASE("TLS older than 1.2 is refused", "[k8s][http][tls][loopback]") {
  Authority a;
  World w;
  fake::ServerTls tls = a.server();
  tls.old = true;
  w.serve(answering(ok_answer("")), tls);
  w.config.ca_pem = a.ca.certificate_pem;
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::not_sent);
}

TEST_CASE("a server that never shakes hands is given up after the limit for connecting",
          "[k8s][http][tls][loopback]") {
  Authority a;
  World w;
  w.serve(silent);
  w.config.tls = true;
  w.config.ca_pem = a.ca.certificate_pem;
  w.connect({.connect = 50ms});
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::not_sent);
  CHECK(
      has(answer.error().text(), "connect 127.0.0.1:" + w.config.port + ": Connection timed out"));
}

TEST_CASE("unusable certificates and keys are named before anything is sent", "[k8s][http][tls]") {
  Authority a, other;
  fake::Identity me = fake::issue(a.ca, "me", "");
  fake::Identity you = fake::issue(a.ca, "you", "");
  Config config{.host = "127.0.0.1", .port = "6443"};
  config.ca_pem = a.ca.certificate_pem;
  std::string expected;
  SECTION("no authority") {
    config.ca_pem = "";
    expected = "no certificate authority";
  }
  SECTION("an authority that is none") {
    config.ca_pem = "hello";
    expected = "the certificate authority holds no PEM certificate";
  }
  SECTION("a damaged authority") {
    config.ca_pem.erase(100, 8);
    expected = "the certificate authority is damaged";
  }
  SECTION("a certificate without its key") {
    config.client_certificate_pem = me.certificate_pem;
    expected = "the client certificate has no key";
  }
  SECTION("a key of somebody else") {
    config.client_certificate_pem = me.certificate_pem;
    config.client_key_pem = you.key_pem;
    expected = "the client key does not belong to the client certificate";
  }
  SECTION("a key that is none") {
    config.client_certificate_pem = me.certificate_pem;
    config.client_key_pem = me.certificate_pem;
    expected = "the client key cannot be read";
  }
  SECTION("a port that is none") {
    config.port = "70000";
    expected = "\"70000\" is no port";
  }
  asio::io_context loop(1);
  RealTime time;
  auto made = make_http_transport(loop.get_executor(), time, config);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Errc::bad_config);
  INFO(made.error().text());
  CHECK(has(made.error().text(), expected));
}

TEST_CASE("a token that is rotated through links is used by the next request",
          "[k8s][http][token][loopback]") {
  fake::TempDir dir;
  dir.write("a/token", "first\n");
  dir.write("b/token", "second\n");
  std::filesystem::create_symlink("a", dir.path("..data"));
  std::filesystem::create_symlink("..data/token", dir.path("token"));
  World w;
  std::vector<std::string> seen;
  w.serve(answering(ok_answer(""), &seen));
  w.config.token_file = dir.path("token");
  ShiftedTime time;
  auto made = make_http_transport(w.loop.get_executor(), time, w.config);
  REQUIRE(made);
  w.transport = *std::move(made);
  REQUIRE(w.get());
  CHECK(has(seen[0], "Authorization: Bearer first\r\n"));

  std::filesystem::create_symlink("b", dir.path("..new"));
  std::filesystem::rename(dir.path("..new"), dir.path("..data"));
  time.ahead = 1s;
  REQUIRE(w.get());
  CHECK(has(seen[1], "Authorization: Bearer second\r\n"));

  std::filesystem::remove(dir.path("..data"));
  time.ahead = 2s;
  REQUIRE(w.get());
  CHECK(has(seen[2], "Authorization: Bearer second\r\n"));
}

TEST_CASE("a token that is not believed is read again and the request repeated once",
          "[k8s][http][token][loopback]") {
  fake::TempDir dir;
  dir.write("token", "old");
  World w;
  std::vector<std::string> seen;
  w.serve([&](SessionPtr session) -> Async<void> {
    for (;;) {
      std::optional<std::string> request = co_await session->request();
      if (!request) co_return;
      seen.push_back(*request);
      dir.write("token", "new");
      bool good = request->find("Bearer new") != std::string::npos && seen.size() < 3;
      co_await session->write(good ? ok_answer("in")
                                   : fake::answer_text("401 Unauthorized", "", "out"));
    }
  });
  w.config.token_file = dir.path("token");
  w.connect();
  Result<HttpAnswer> answer = w.send({.method = "POST", .target = "/", .body = "{}"});
  REQUIRE(answer);
  CHECK(answer->status == 200);
  CHECK(seen.size() == 2);
  Result<HttpAnswer> refused = w.get();
  REQUIRE(refused);
  CHECK(refused->status == 401);
  CHECK(seen.size() == 4);
}

TEST_CASE("a token file that never was readable is named", "[k8s][http][token][loopback]") {
  fake::TempDir dir;
  World w;
  w.serve(answering(ok_answer("")));
  w.config.token_file = dir.path("token");
  w.connect();
  Result<HttpAnswer> answer = w.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::not_sent);
  CHECK(has(answer.error().text(), "read token file " + dir.path("token") + ": No such file"));
  CHECK(w.server->accepted() == 0);
}
