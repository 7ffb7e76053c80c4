#include "catch.hpp"
#include "served.hpp"

using namespace nvdra;
using namespace nvdra::sandbox;

namespace {

const std::string domains = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains";
const char* const domain_text =
    "{'kind': 'ComputeDomain', 'metadata': {'name': 'd'}, 'spec': {'channel': "
    "{'resourceClaimTemplate': {'name': 't'}}}}";

std::string versioned(const std::string& target, const ItemPtr& item) {
  return target + "?watch=true&resourceVersion=" + std::string(item->version());
}

std::string type_of(const Json& event) {
  return std::string(text_or_empty(event, "type"));
}

}  // namespace

TEST_CASE("objects are created, read, patched, listed and deleted over HTTP", "[sandbox][api]") {
  Served world;
  Reply made = world.call("POST", domains, domain_text);
  CHECK(made.status == 201);
  CHECK(text_or_empty(made.object, "kind") == "ComputeDomain");
  Reply patched = world.call("PATCH", domains + "/d/status", "{'status': {'status': 'Ready'}}",
                             "application/merge-patch+json");
  CHECK(patched.status == 200);
  CHECK(text_or_empty(patched.object, "status/status") == "Ready");
  Reply read = world.call("GET", domains + "/d");
  CHECK(read.object == patched.object);
  Reply list = world.call("GET", "/apis/resource.nvidia.com/v1beta1/computedomains?limit=1");
  CHECK(text_or_empty(list.object, "kind") == "ComputeDomainList");
  REQUIRE(array_or_empty(list.object, "items").size() == 1);
  CHECK(get(array_or_empty(list.object, "items").at(0), "kind"));
  Reply spaces = world.call("GET", "/api/v1/namespaces");
  REQUIRE_FALSE(array_or_empty(spaces.object, "items").empty());
  CHECK_FALSE(get(array_or_empty(spaces.object, "items").at(0), "kind"));
  CHECK_FALSE(text_or_empty(list.object, "metadata/resourceVersion").empty());
  Reply gone = world.call("DELETE", domains + "/d", "{'propagationPolicy': 'Background'}");
  CHECK(gone.status == 200);
  CHECK(text_or_empty(gone.object, "status") == "Success");
  Reply missing = world.call("GET", domains + "/d");
  CHECK(missing.status == 404);
  CHECK(text_or_empty(missing.object, "reason") == "NotFound");
  CHECK(text_or_empty(missing.object, "details/kind") == "computedomains");
}

TEST_CASE("refusals have the status and reason of the API server", "[sandbox][api]") {
  struct Row {
    const char* method;
    std::string target;
    const char* body;
    const char* type;
    int status;
    const char* reason;
  };
  const char* plain = "application/json";
  // clang-format off
  const Row row = GENERATE_REF(values<Row>({
      {"POST", domains, "{", plain, 400, "BadRequest"},
      {"POST", domains, "{'metadata': {'name': 'd'}}", plain, 400, "BadRequest"},
      {"POST", domains, "{'kind': 'ComputeDomain', 'metadata': {'name': 'd'}}", plain, 422, "Invalid"},
      {"POST", domains + "?fieldValidation=Strict", "{'kind': 'ComputeDomain', 'metadata': {'name': 'd'}, 'x': 1, 'spec': {'channel': {'resourceClaimTemplate': {'name': 't'}}}}", plain, 400, "BadRequest"},
      {"POST", domains, "x", "application/cbor", 415, "UnsupportedMediaType"},
      {"POST", domains, "x", "application/vnd.kubernetes.protobuf", 400, "BadRequest"},
      {"PATCH", domains + "/none", "{}", "application/merge-patch+json", 404, "NotFound"},
      {"PATCH", domains + "/none", "{}", plain, 415, "UnsupportedMediaType"},
      {"GET", "/apis/resource.nvidia.com/v1/computedomains", "", plain, 404, ""},
      {"GET", domains + "?fieldSelector=spec.numNodes%3D1", "", plain, 400, "BadRequest"},
      {"GET", domains + "?watch=1&resourceVersion=x", "", plain, 400, "BadRequest"},
      {"GET", "/api/v1/namespaces/default/pods/none/log", "", plain, 404, "NotFound"},
      {"GET", "/nothing", "", plain, 404, ""},
  }));
  // clang-format on
  INFO(row.method << " " << row.target);
  Served world;
  Reply reply = world.call(row.method, row.target, row.body, row.type);
  CHECK(reply.status == row.status);
  CHECK(text_or_empty(reply.object, "reason") == row.reason);
}

TEST_CASE("a watch tells what happened after its version and what happens next", "[sandbox][api]") {
  Served world;
  ItemPtr domain = world.domain("d");
  world.domain("e");
  auto stream = world.open(versioned(domains, domain));
  Json first = world.next_event(*stream);
  CHECK(type_of(first) == "ADDED");
  CHECK(text_or_empty(first, "object/metadata/name") == "e");
  REQUIRE(world.registry.remove(world.of("computedomains"), domain->key()));
  Json second = world.next_event(*stream);
  CHECK(type_of(second) == "DELETED");
  CHECK(text_or_empty(second, "object/metadata/name") == "d");
}

TEST_CASE("a watch without a version begins with the present state", "[sandbox][api]") {
  Served world;
  world.domain("d");
  auto stream = world.open(domains + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true");
  CHECK(type_of(world.next_event(*stream)) == "ADDED");
  Json bookmark = world.next_event(*stream);
  CHECK(type_of(bookmark) == "BOOKMARK");
  CHECK(get(*find(bookmark, "object/metadata/annotations"), "k8s.io/initial-events-end"));
}

TEST_CASE("a watch from forgotten history ends with 410", "[sandbox][api]") {
  Served world;
  ItemPtr domain = world.domain("d");
  world.domain("e");
  CHECK(world.call("POST", "/sandbox/compact").status == 200);
  auto stream = world.open(versioned(domains, domain));
  Json event = world.next_event(*stream);
  CHECK(type_of(event) == "ERROR");
  CHECK(int_or(event, "object/code", 0) == 410);
  CHECK(text_or_empty(event, "object/reason") == "Expired");
  CHECK(world.next_line(*stream).empty());
}

TEST_CASE("bookmarks come while nothing happens, and a watch ends at its time", "[sandbox][api]") {
  Served world({}, {.bookmark_every = 50ms});
  ItemPtr domain = world.domain("d");
  world.make("configmaps", "default", "{'metadata': {'name': 'c'}}");
  auto stream =
      world.open(versioned(domains, domain) + "&allowWatchBookmarks=true&timeoutSeconds=1");
  Json bookmark = world.next_event(*stream);
  CHECK(type_of(bookmark) == "BOOKMARK");
  CHECK(text_or_empty(bookmark, "object/metadata/resourceVersion") ==
        std::to_string(world.registry.version()));
  std::string last;
  for (std::string line = "x"; !line.empty(); line = world.next_line(*stream)) last = line;
  CHECK(last.find("BOOKMARK") != std::string::npos);
}

TEST_CASE("a closed watch connection ends its subscription", "[sandbox][api]") {
  Served world;
  ItemPtr domain = world.domain("d");
  auto stream = world.open(versioned(domains, domain));
  world.domain("e");
  world.next_line(*stream);
  CHECK(world.registry.feed().subscriptions() == 1);
  stream.reset();
  Instant limit = Clock::now() + 5s;
  while (world.registry.feed().subscriptions() > 0 && Clock::now() < limit)
    world.loop.run_one_for(50ms);
  CHECK(world.registry.feed().subscriptions() == 0);
}

TEST_CASE("fault rules hit what they match, as often as they say", "[sandbox][api][faults]") {
  Served world;
  Reply added = world.call("POST", "/sandbox/faults",
                           "{'match': {'verb': 'create', 'resource': 'computedomains'}, 'skip': 1, "
                           "'status': 429, 'retryAfterSeconds': 7}");
  REQUIRE(added.status == 200);
  std::string two = domain_text;
  two.replace(two.find("'d'"), 3, "'e'");
  CHECK(world.call("POST", domains, domain_text).status == 201);
  Reply limited = world.call("POST", domains, two);
  CHECK(limited.status == 429);
  CHECK(limited.head.find("Retry-After: 7") != std::string::npos);
  CHECK(int_or(limited.object, "details/retryAfterSeconds", 0) == 7);
  CHECK(world.call("POST", domains, two).status == 201);
  Reply rules = world.call("GET", "/sandbox/faults");
  CHECK(int_or(rules.object.get_array()[0], "hits", 0) == 1);
  CHECK(world.server->count("create", "computedomains") == 3);
  CHECK(world.call("POST", "/sandbox/faults", "{'sttus': 1}").status == 400);
}

TEST_CASE("a cut connection before, after or amid the answer", "[sandbox][api][faults]") {
  struct Row {
    const char* cut;
    bool done;
  };
  const Row row = GENERATE(values<Row>({{"before", false}, {"after", true}, {"body", true}}));
  INFO(row.cut);
  Served world;
  REQUIRE(world.server->faults().add(json(std::string("{'cut': '") + row.cut + "'}")));
  Reply reply = world.call("POST", domains, domain_text);
  CHECK(reply.status == 0);
  CHECK(bool(world.registry.find(world.of("computedomains"), {"default", "d"})) == row.done);
}

TEST_CASE("watch faults drop events, end the stream, or say nothing", "[sandbox][api][faults]") {
  Served world;
  ItemPtr domain = world.domain("d");
  world.domain("e");
  world.domain("f");
  REQUIRE(world.server->faults().add(
      json("{'match': {'verb': 'watch'}, 'watch': {'dropEvents': 1, 'endAfterEvents': 1}}")));
  auto stream = world.open(versioned(domains, domain));
  CHECK(text_or_empty(world.next_event(*stream), "object/metadata/name") == "f");
  CHECK(world.next_line(*stream).empty());

  REQUIRE(
      world.server->faults().add(json("{'match': {'verb': 'watch'}, 'watch': {'silent': true}}")));
  auto silent = world.open(versioned(domains, domain));
  auto other = world.open(versioned(domains, domain));
  CHECK(text_or_empty(world.next_event(*other), "object/metadata/name") == "e");
  CHECK(world.call("DELETE", "/sandbox/watches?resource=computedomains").status == 200);
  CHECK(world.next_line(*silent).empty());
}

TEST_CASE("a Table has the columns of the CRD", "[sandbox][api][table]") {
  Served world;
  ItemPtr domain = world.domain("d");
  REQUIRE(world.registry.patch(world.of("computedomains"), domain->key(),
                               json("{'status': {'status': 'Ready', 'nodeSummary': '2/2'}}"),
                               PatchForm::merge, {.subresource = "status"}));
  Reply table = world.call("GET", domains, "", "application/json",
                           "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
  CHECK(text_or_empty(table.object, "kind") == "Table");
  std::vector<std::string> names;
  for (const Json& column : array_or_empty(table.object, "columnDefinitions"))
    names.emplace_back(text_or_empty(column, "name"));
  CHECK(names == std::vector<std::string>{"Name", "Status", "Nodes", "Age"});
  const Json& row = array_or_empty(table.object, "rows").at(0);
  CHECK(*get(row, "cells") == json("['d', 'Ready', '2/2', '0s']"));
  CHECK(text_or_empty(row, "object/metadata/namespace") == "default");
}

TEST_CASE("discovery lists groups, versions and resources", "[sandbox][api][discovery]") {
  Served world({.resource_versions = {"v1beta2", "v1beta1"}});
  Reply group = world.call("GET", "/apis/resource.k8s.io");
  CHECK(text_or_empty(group.object, "preferredVersion/version") == "v1beta2");
  Reply list = world.call("GET", "/apis/resource.nvidia.com/v1beta1");
  CHECK(text_or_empty(list.object, "groupVersion") == "resource.nvidia.com/v1beta1");
  CHECK(list.body.find("\"computedomains/status\"") != std::string::npos);
  CHECK(list.body.find("\"shortNames\":[\"cd\"]") != std::string::npos);
  CHECK(world.call("GET", "/apis/resource.k8s.io/v1").status == 404);
  CHECK(world.call("GET", "/apis/resource.k8s.io/v1/resourceclaims").status == 404);
  CHECK(text_or_empty(world.call("GET", "/version").object, "gitVersion") == "v1.34.4");
  CHECK(world.call("GET", "/readyz").body == "ok");
}

TEST_CASE("v1beta1 clients see and send their own shapes", "[sandbox][api][versions]") {
  Served world({.resource_versions = {"v1", "v1beta1"}});
  std::string slices = "/apis/resource.k8s.io/v1beta1/resourceslices";
  Reply made =
      world.call("POST", slices,
                 "{'metadata': {'name': 's'}, 'spec': {'driver': 'd', 'nodeName': 'n', 'pool': "
                 "{'name': 'n'}, 'devices': [{'name': 'c', 'basic': {'attributes': {'id': "
                 "{'int': 0}}}}]}}");
  REQUIRE(made.status == 201);
  CHECK(text_or_empty(made.object, "apiVersion") == "resource.k8s.io/v1beta1");
  Reply stored = world.call("GET", "/apis/resource.k8s.io/v1/resourceslices/s");
  CHECK(array_or_empty(stored.object, "spec/devices").at(0) ==
        json("{'name': 'c', 'attributes': {'id': {'int': 0}}}"));
  Reply back = world.call("GET", slices + "/s");
  CHECK(find(array_or_empty(back.object, "spec/devices").at(0), "basic/attributes/id/int"));

  world.call("POST", "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims",
             "{'metadata': {'name': 'c'}, 'spec': {'devices': {'requests': [{'name': 'r', "
             "'deviceClassName': 'k'}]}}}");
  Reply claim = world.call("GET", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c");
  CHECK(array_or_empty(claim.object, "spec/devices/requests").at(0) ==
        json("{'name': 'r', 'exactly': {'deviceClassName': 'k', 'allocationMode': 'ExactCount', "
             "'count': 1}}"));
}

TEST_CASE("kinds that kubectl creates in protobuf are understood", "[sandbox][api][protobuf]") {
  Served world;
  auto field = [](char tag, std::string_view bytes) {
    return std::string{tag, static_cast<char>(bytes.size())} + std::string(bytes);
  };
  auto envelope = [&](std::string_view kind, const std::string& object) {
    return std::string("k8s\0", 4) + field('\x0a', field('\x0a', "v1") + field('\x12', kind)) +
           field('\x12', object);
  };
  std::string metadata = field('\x0a', field('\x0a', "other") + field('\x12', ""));
  const char* type = "application/vnd.kubernetes.protobuf";
  CHECK(world.call("POST", "/api/v1/namespaces", envelope("Namespace", metadata), type).status ==
        201);
  std::string entry = field('\x12', field('\x0a', "k") + field('\x12', "v"));
  Reply map = world.call("POST", "/api/v1/namespaces/other/configmaps",
                         envelope("ConfigMap", metadata + entry), type);
  CHECK(map.status == 201);
  CHECK(text_or_empty(map.object, "data/k") == "v");
  Reply job = world.call("POST", "/apis/batch/v1/namespaces/other/jobs", envelope("Job", ""), type);
  CHECK(job.status == 415);
  CHECK_THAT(std::string(text_or_empty(job.object, "message")),
             Catch::Contains("use kubectl apply"));
  Reply broken = world.call("POST", "/api/v1/namespaces", envelope("Namespace", "\x0a\x7f"), type);
  CHECK(broken.status == 400);
}
