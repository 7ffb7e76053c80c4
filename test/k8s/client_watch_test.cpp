// Watches, and what a server serves.
#include "catch.hpp"
#include "k8s/client.hpp"
#include "k8s/client_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::client_test;
using fake::answer;
using fake::refusal;

TEST_CASE("a watch hands out events and bookmarks and ends in good order", "[k8s][watch]") {
  World w;
  auto body = w.api.expect_stream(
      "GET /api/v1/namespaces/default/pods?watch=true&allowWatchBookmarks=true&resourceVersion=5"
      "&timeoutSeconds=180");
  auto watch = w.watch({.resource_version = "5"});
  auto first = w.start(watch->next());
  CHECK_FALSE(*first);

  std::string two = event("ADDED", pod("a", "6")) + event("NEW-TYPE", "{}") +
                    event("BOOKMARK", R"({"metadata":{"resourceVersion":"9"}})");
  body->push(two.substr(0, 10));
  w.time.settle();
  CHECK_FALSE(*first);
  body->push(two.substr(10));
  w.time.settle();
  REQUIRE(*first);
  REQUIRE((*first)->has_value());
  CHECK((**first)->value().object.name() == "a");

  auto second = w.now(watch->next());
  REQUIRE(second);
  CHECK((*second)->kind == WatchEvent::Kind::bookmark);
  CHECK((*second)->object.version() == "9");

  body->end();
  auto end = w.now(watch->next());
  REQUIRE(end);
  CHECK_FALSE(end->has_value());
  CHECK(body->open());
  watch.reset();
  CHECK_FALSE(body->open());
}

TEST_CASE("an ERROR event with 410 means that the version is gone", "[k8s][watch]") {
  World w;
  auto body = w.api.expect_stream("GET /api/v1/namespaces/default/pods?*");
  auto watch = w.watch({.resource_version = "5"});
  body->push(event("ERROR", R"({"code":410,"reason":"Expired","message":"too old"})"));
  auto next = w.now(watch->next());
  REQUIRE_FALSE(next);
  CHECK(next.error().code == Errc::gone);
  CHECK(next.error().text() == "watch pods in default: too old: resource version expired");
}

TEST_CASE("one event that cannot be understood does not end the watch", "[k8s][watch]") {
  World w;
  auto body = w.api.expect_stream("GET /api/v1/namespaces/default/pods?*");
  auto watch = w.watch({.resource_version = "5"});
  body->push("garbage\n" + event("ADDED", pod("a", "6")));
  auto bad = w.now(watch->next());
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == Errc::malformed_answer);
  auto good = w.now(watch->next());
  REQUIRE(good);
  CHECK((*good)->object.name() == "a");
}

TEST_CASE("a watch that is cut or ends inside an event is a lost connection", "[k8s][watch]") {
  World w;
  auto body = w.api.expect_stream("GET /api/v1/namespaces/default/pods?*");
  auto watch = w.watch({.resource_version = "5"});
  body->push("{\"type\":\"ADD");
  if (GENERATE(true, false)) {
    body->cut();
  } else {
    body->end();
  }
  auto next = w.now(watch->next());
  REQUIRE_FALSE(next);
  CHECK(next.error().code == Errc::disconnected);
}

TEST_CASE("a silent watch is given up after the server's limit and a margin", "[k8s][watch]") {
  World w;
  auto body = w.api.expect_stream("GET /api/v1/namespaces/default/pods?*");
  auto watch = w.watch({.resource_version = "5", .server_limit = 60s});
  auto next = w.start(watch->next());
  w.time.advance(89s);
  CHECK_FALSE(*next);
  w.time.advance(1s);
  REQUIRE(*next);
  CHECK((*next)->error().code == boost::system::errc::timed_out);
}

TEST_CASE("a watch that is refused says why", "[k8s][watch]") {
  World w;
  w.api.expect("GET /api/v1/namespaces/default/pods?*", refusal(410, "Expired"));
  auto opened = w.start(w.client.watch(pods, "default", {.resource_version = "1"}));
  REQUIRE(*opened);
  REQUIRE_FALSE((*opened)->has_value());
  CHECK((*opened)->error().code == Errc::gone);
}

TEST_CASE("opening a watch waits as long as a busy server asks", "[k8s][watch]") {
  World w;
  fake::Reply busy = refusal(429, "TooManyRequests");
  busy.retry_after = 1s;
  w.api.expect("GET /api/v1/namespaces/default/pods?*", busy);
  auto body = w.api.expect_stream("GET /api/v1/namespaces/default/pods?*");
  auto opened = w.start(w.client.watch(pods, "default", {.resource_version = "1"}));
  CHECK_FALSE(*opened);
  w.time.advance(1s);
  REQUIRE(*opened);
  CHECK((*opened)->has_value());
}

TEST_CASE("the newest usable version of resource.k8s.io is chosen", "[k8s][discovery]") {
  struct Row {
    const char* versions;
    const char* expected;
  };
  const Row row = GENERATE(values<Row>({
      {R"([{"version":"v1"},{"version":"v1beta2"},{"version":"v1beta1"}])", "v1"},
      {R"([{"version":"v1beta1"},{"version":"v1beta2"}])", "v1beta2"},
      {R"([{"version":"v1alpha3"},{"version":"v1beta1"}])", "v1beta1"},
  }));
  INFO(row.versions);
  World w;
  w.api.expect("GET /apis/resource.k8s.io",
               answer(200, fmt::format(R"({{"kind":"APIGroup","versions":{}}})", row.versions)));
  Result<std::string> version = w.now(discover_resource_version(w.client));
  REQUIRE(version);
  CHECK(*version == row.expected);
}

TEST_CASE("a server without a usable resource.k8s.io is named as such", "[k8s][discovery]") {
  World w;
  SECTION("no group at all") {
    w.api.expect("GET /apis/resource.k8s.io", answer(404, "404 page not found"));
    Result<std::string> version = w.now(discover_resource_version(w.client));
    REQUIRE_FALSE(version);
    CHECK(version.error().text().find("no version of resource.k8s.io") != std::string::npos);
  }
  SECTION("only old versions") {
    w.api.expect("GET /apis/resource.k8s.io",
                 answer(200, R"({"versions":[{"version":"v1alpha3"}]})"));
    Result<std::string> version = w.now(discover_resource_version(w.client));
    REQUIRE_FALSE(version);
    CHECK(version.error().text().find("only v1alpha3") != std::string::npos);
  }
}

TEST_CASE("group versions come preferred first, the core group's too", "[k8s][discovery]") {
  World w;
  w.api.expect("GET /apis/apps", answer(200, R"({"versions":[{"version":"v1beta1"},
      {"version":"v1"}],"preferredVersion":{"version":"v1"}})"));
  auto apps = w.now(w.client.group_versions("apps"));
  REQUIRE(apps);
  CHECK(*apps == std::vector<std::string>{"v1", "v1beta1"});
  w.api.expect("GET /api", answer(200, R"({"versions":["v1"]})"));
  auto core = w.now(w.client.group_versions(""));
  REQUIRE(core);
  CHECK(*core == std::vector<std::string>{"v1"});
}

TEST_CASE("serves looks for the plural in the version's list", "[k8s][discovery]") {
  World w;
  const char* list =
      R"({"resources":[{"name":"computedomains"},{"name":"computedomains/status"}]})";
  w.api.expect("GET /apis/resource.nvidia.com/v1beta1", answer(200, list));
  w.api.expect("GET /apis/coordination.k8s.io/v1", answer(404, ""));
  Result<bool> served = w.now([](Client& c) -> Async<Result<bool>> {
    Result<bool> yes = co_await c.serves(domains);
    Result<bool> no = co_await c.serves(leases);
    co_return yes&& no && *yes && !*no;
  }(w.client));
  REQUIRE(served);
  CHECK(*served);
}
