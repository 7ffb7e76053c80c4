// Streams, big bodies, and requests side by side.
#include "k8s/transport_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::test;

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
