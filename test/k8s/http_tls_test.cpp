// Certificates and tokens.
#include "k8s/transport_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::test;

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
