#include "k8s/client.hpp"

#include "catch.hpp"
#include "k8s/client_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::client_test;
using fake::answer;
using fake::refusal;

TEST_CASE("paths name group, version, namespace and object, percent-encoded", "[k8s][request]") {
  CHECK(path_of(pods, "default", "a") == "/api/v1/namespaces/default/pods/a");
  CHECK(path_of(pods, "") == "/api/v1/pods");
  CHECK(path_of(nodes, "", "n1") == "/api/v1/nodes/n1");
  CHECK(path_of(nodes, "ignored", "n1") == "/api/v1/nodes/n1");
  CHECK(path_of(domains, "x", "y") ==
        "/apis/resource.nvidia.com/v1beta1/namespaces/x/computedomains/y");
  CHECK(path_of(pods, "a/../b", "x y?z") == "/api/v1/namespaces/a%2F..%2Fb/pods/x%20y%3Fz");
}

TEST_CASE("get asks for the object and knows its type", "[k8s][client]") {
  World w;
  w.api.expect("GET /api/v1/namespaces/default/pods/a", answer(200, pod("a", "7")));
  Result<Object> got = w.now(w.client.get(pods, {"default", "a"}));
  REQUIRE(got);
  CHECK(got->name() == "a");
  CHECK(got->version() == "7");
  CHECK(text_or_empty(got->json(), "kind") == "Pod");
}

TEST_CASE("an error begins with what was asked and keeps the server's sentence", "[k8s][client]") {
  World w;
  w.api.expect("GET /api/v1/namespaces/default/pods/a",
               refusal(404, "NotFound", "pods a not found"));
  Result<Object> got = w.now(w.client.get(pods, {"default", "a"}));
  REQUIRE_FALSE(got);
  CHECK(got.error().code == Errc::not_found);
  CHECK(got.error().text() == "get pods default/a: pods a not found: not found");
}

TEST_CASE("a name that would change the path is refused before anything is sent", "[k8s][client]") {
  World w;
  std::string name = GENERATE("", ".", "..");
  INFO(name);
  Result<Object> got = w.now(w.client.get(pods, {"default", name}));
  CHECK_FALSE(got);
  Result<void> removed = w.now(w.client.remove(pods, {"default", name}));
  CHECK_FALSE(removed);
  CHECK(w.api.requests.empty());
}

TEST_CASE("answers that are no objects are malformed, with their first bytes shown",
          "[k8s][client]") {
  World w;
  std::string body = GENERATE("", "<html>", "[1]", "{\"a\":1}", "{\"metadata\":");
  INFO(body);
  w.api.expect("GET /api/v1/nodes/a", answer(200, body));
  Result<Object> got = w.now(w.client.get(nodes, {"", "a"}));
  REQUIRE_FALSE(got);
  CHECK(got.error().code == Errc::malformed_answer);
  CHECK(got.error().text().starts_with("get nodes a: "));
  CHECK(got.error().text().find(body) != std::string::npos);
}

TEST_CASE("a list is fetched page by page and its items know their type", "[k8s][client]") {
  World w;
  w.api.expect("GET /api/v1/pods?labelSelector=a%3Db%2Cc&limit=2",
               answer(200, page("50", pod("a", "1") + "," + pod("b", "2"), "t/1")));
  w.api.expect("GET /api/v1/pods?labelSelector=a%3Db%2Cc&limit=2&continue=t%2F1",
               answer(200, page("50", pod("c", "3"))));
  Result<ListAnswer> list = w.now(w.client.list(pods, "", {.label_selector = "a=b,c", .page = 2}));
  REQUIRE(list);
  CHECK(list->version == "50");
  REQUIRE(list->items.size() == 3);
  CHECK(list->items[2].name() == "c");
  CHECK(text_or_empty(list->items[2].json(), "apiVersion") == "v1");
}

TEST_CASE("a page token that expired starts the list once more", "[k8s][client]") {
  World w;
  w.api.expect("GET /api/v1/pods?limit=500", answer(200, page("50", pod("a", "1"), "t1")));
  w.api.expect("GET /api/v1/pods?limit=500&continue=t1", refusal(410, "Expired"));
  w.api.expect("GET /api/v1/pods?limit=500", answer(200, page("90", pod("b", "60"), "t2")));

  SECTION("and succeeds") {
    w.api.expect("GET /api/v1/pods?limit=500&continue=t2", answer(200, page("90", pod("c", "9"))));
    Result<ListAnswer> list = w.now(w.client.list(pods, ""));
    REQUIRE(list);
    CHECK(list->version == "90");
    REQUIRE(list->items.size() == 2);
    CHECK(list->items[0].name() == "b");
  }
  SECTION("but not for ever") {
    w.api.expect("GET /api/v1/pods?limit=500&continue=t2", refusal(410, "Expired"));
    Result<ListAnswer> list = w.now(w.client.list(pods, ""));
    REQUIRE_FALSE(list);
    CHECK(list.error().code == Errc::gone);
  }
}

TEST_CASE("an empty list may say null; something else is no list", "[k8s][client]") {
  World w;
  w.api.expect("GET /api/v1/pods?limit=500&resourceVersion=0",
               answer(200, R"({"metadata":{"resourceVersion":"5"},"items":null})"));
  Result<ListAnswer> list = w.now(w.client.list(pods, "", {.resource_version = "0"}));
  REQUIRE(list);
  CHECK(list->items.empty());
  CHECK(list->version == "5");

  w.api.expect("GET /api/v1/pods?limit=500", answer(200, pod("a", "1")));
  Result<ListAnswer> none = w.now(w.client.list(pods, ""));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Errc::malformed_answer);
}

TEST_CASE("create posts to the collection with type filled in", "[k8s][client]") {
  World w;
  w.api.expect("POST /apis/resource.nvidia.com/v1beta1/namespaces/x/computedomains",
               answer(201, pod("d-1", "1")));
  Json object = JsonObject{{"metadata", JsonObject{{"generateName", "d-"}}}};
  Result<Object> made = w.now(w.client.create(domains, "x", object));
  REQUIRE(made);
  CHECK(made->name() == "d-1");
  Result<Json> sent = parse_json(w.api.requests[0].body);
  REQUIRE(sent);
  CHECK(text_or_empty(*sent, "kind") == "ComputeDomain");
  CHECK(text_or_empty(*sent, "apiVersion") == "resource.nvidia.com/v1beta1");
  CHECK(w.api.requests[0].content_type == "application/json");

  Result<Object> nameless = w.now(w.client.create(domains, "x", JsonObject{}));
  CHECK_FALSE(nameless);
}

TEST_CASE("an existing object and a stale version are different errors", "[k8s][client]") {
  World w;
  w.api.expect("POST /api/v1/nodes", refusal(409, "AlreadyExists"));
  Result<Object> made =
      w.now(w.client.create(nodes, "", JsonObject{{"metadata", JsonObject{{"name", "a"}}}}));
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Errc::already_exists);

  w.api.expect("PUT /api/v1/nodes/a", refusal(409, "Conflict"));
  Result<Object> updated = w.now(w.client.update(nodes, {"", "a"}, JsonObject{}));
  REQUIRE_FALSE(updated);
  CHECK(updated.error().code == Errc::conflict);
}

TEST_CASE("each kind of patch has its content type and goes to the subresource asked for",
          "[k8s][client]") {
  World w;
  w.api.expect("PATCH /api/v1/namespaces/x/pods/a?fieldManager=nvdra", answer(200, pod("a", "2")));
  w.api.expect("PATCH /api/v1/namespaces/x/pods/a/status?fieldManager=me",
               answer(200, pod("a", "3")));
  w.api.expect("PATCH /api/v1/namespaces/x/pods/a?fieldManager=nvdra&force=true",
               answer(200, pod("a", "4")));
  auto merged = w.start(w.client.patch(pods, {"x", "a"}, JsonObject{{"k", 1}}));
  auto guarded = w.start(
      w.client.patch(pods, {"x", "a"}, JsonArray{},
                     {.kind = PatchKind::json, .subresource = "status", .field_manager = "me"}));
  auto applied = w.start(
      w.client.patch(pods, {"x", "a"}, JsonObject{}, {.kind = PatchKind::apply, .force = true}));
  REQUIRE((*merged && *guarded && *applied));
  CHECK(((*merged)->has_value() && (*guarded)->has_value() && (*applied)->has_value()));
  CHECK(w.api.requests[0].content_type == "application/merge-patch+json");
  CHECK(w.api.requests[0].body == R"({"k":1})");
  CHECK(w.api.requests[1].content_type == "application/json-patch+json");
  CHECK(w.api.requests[2].content_type == "application/apply-patch+yaml");
}

TEST_CASE("delete sends its preconditions", "[k8s][client]") {
  World w;
  w.api.expect("DELETE /api/v1/namespaces/x/pods/a", answer(200, "{}"));
  Result<void> removed = w.now(w.client.remove(
      pods, {"x", "a"},
      {.uid = "u-1", .resource_version = "9", .propagation = "Background", .grace_seconds = 0}));
  CHECK(removed);
  CHECK(w.api.requests[0].body ==
        R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u-1",)"
        R"("resourceVersion":"9"},"propagationPolicy":"Background","gracePeriodSeconds":0})");
}

TEST_CASE("calls for leases are marked urgent, others are not", "[k8s][client]") {
  World w;
  w.api.otherwise = [](const HttpRequest&) { return answer(200, pod("l", "1")); };
  Json lease = JsonObject{{"metadata", JsonObject{{"name", "l"}}}};
  auto a = w.start(w.client.get_urgent(leases, {"x", "l"}));
  auto b = w.start(w.client.create_urgent(leases, "x", lease));
  auto c = w.start(w.client.update(leases, {"x", "l"}, lease, true));
  auto d = w.start(w.client.update(leases, {"x", "l"}, lease));
  REQUIRE(w.api.requests.size() == 4);
  CHECK(w.api.requests[0].urgent);
  CHECK(w.api.requests[1].urgent);
  CHECK(w.api.requests[2].urgent);
  CHECK_FALSE(w.api.requests[3].urgent);
}

TEST_CASE("a server that asks for a pause gets it, within the call's limit", "[k8s][client]") {
  World w;
  int status = GENERATE(429, 503);
  fake::Reply busy = refusal(status, "TooManyRequests");
  busy.retry_after = 2s;
  w.api.expect("GET /api/v1/nodes/a", busy);
  w.api.expect("GET /api/v1/nodes/a", busy);
  w.api.expect("GET /api/v1/nodes/a", answer(200, pod("a", "1")));
  auto got = w.start(w.client.get(nodes, {"", "a"}));
  CHECK(w.api.requests.size() == 1);
  w.time.advance(1s);
  CHECK(w.api.requests.size() == 1);
  w.time.advance(1s);
  CHECK(w.api.requests.size() == 2);
  CHECK_FALSE(*got);
  w.time.advance(2s);
  REQUIRE(*got);
  CHECK((*got)->has_value());
  CHECK(w.api.requests[2].limit == Duration(26s));
  CHECK(w.client.counts().at({"GET", status}) == 2);
  CHECK(w.client.counts().at({"GET", 200}) == 1);
}

TEST_CASE("a refusal is the answer when the pause is unknown or longer than the limit",
          "[k8s][client]") {
  World w;
  fake::Reply busy = refusal(429, "TooManyRequests");
  busy.retry_after = GENERATE(as<std::optional<Duration>>(), std::nullopt, Duration(30s));
  w.api.expect("GET /api/v1/nodes/a", busy);
  Result<Object> got = w.now(w.client.get(nodes, {"", "a"}));
  REQUIRE_FALSE(got);
  CHECK(got.error().code == Errc::too_many_requests);
}

TEST_CASE("other errors are not retried inside a call", "[k8s][client]") {
  World w;
  fake::Reply sick = refusal(500, "InternalError");
  sick.retry_after = 1s;
  w.api.expect("GET /api/v1/nodes/a", sick);
  Result<Object> got = w.now(w.client.get(nodes, {"", "a"}));
  CHECK_FALSE(got);

  w.api.expect("GET /api/v1/nodes/a", fake::broken(Errc::disconnected));
  Result<Object> lost = w.now(w.client.get(nodes, {"", "a"}));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == Errc::disconnected);
  CHECK(w.client.counts().at({"GET", 0}) == 1);
}

TEST_CASE("requests are traced at level 6 in the form that tests look for, not below",
          "[k8s][log]") {
  int level = GENERATE(5, 6);
  fake::CapturedLog log({.verbosity = level});
  World w;
  w.api.expect("GET /api/v1/nodes/a", answer(200, pod("a", "1")));
  Result<Object> got = w.now(w.client.get(nodes, {"", "a"}));
  CHECK(got);
  CHECK(log.has("round_trippers.go") == (level == 6));
  CHECK(log.has(R"("Response" verb="GET" url="/api/v1/nodes/a" status="200 OK" milliseconds=0)") ==
        (level == 6));
}
