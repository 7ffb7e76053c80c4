#include "k8s/http_transport.hpp"

#include "k8s/transport_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::test;

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
