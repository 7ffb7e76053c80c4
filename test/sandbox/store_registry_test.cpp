#include "catch.hpp"
#include "world.hpp"

#include <algorithm>
#include <set>

using namespace nvdra;
using namespace nvdra::sandbox;

namespace {

const char* const pod_text =
    "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}";

Json changed(const ItemPtr& item, const std::string& patch) {
  Json object = item->json();
  merge_patch(object, json(patch));
  return object;
}

}  // namespace

TEST_CASE("a new object gets identity, version, generation and defaults", "[sandbox][registry]") {
  World world;
  ItemPtr domain = world.domain("d");
  CHECK(domain->uid().size() == 36);
  CHECK(domain->version() == std::to_string(world.registry.version()));
  CHECK(int_or(domain->json(), "metadata/generation", 0) == 1);
  CHECK(int_or(domain->json(), "spec/numNodes", -1) == 0);
  CHECK(text_or_empty(domain->json(), "spec/channel/allocationMode") == "Single");
  CHECK(text_or_empty(domain->json(), "apiVersion") == "resource.nvidia.com/v1beta1");
  CHECK_FALSE(text_or_empty(domain->json(), "metadata/creationTimestamp").empty());
}

TEST_CASE("what the API server refuses at creation", "[sandbox][registry]") {
  struct Row {
    const char* why;
    const char* resource;
    const char* space;
    const char* object;
    Reason reason;
    const char* says;
  };
  // clang-format off
  const Row row = GENERATE(values<Row>({
      {"no name", "pods", "default", "{'metadata': {}}", Reason::invalid, "name or generateName is required"},
      {"no namespace", "pods", "", "{'metadata': {'name': 'p'}}", Reason::bad_request, "empty namespace"},
      {"unknown namespace", "configmaps", "none", "{'metadata': {'name': 'p'}}", Reason::not_found, "namespaces \"none\" not found"},
      {"other namespace", "configmaps", "default", "{'metadata': {'name': 'p', 'namespace': 'x'}}", Reason::bad_request, "does not match the namespace"},
      {"upper case name", "configmaps", "default", "{'metadata': {'name': 'P'}}", Reason::invalid, "RFC 1123"},
      {"bad label", "configmaps", "default", "{'metadata': {'name': 'p', 'labels': {'a': '-x'}}}", Reason::invalid, "metadata.labels"},
      {"wrong kind", "configmaps", "default", "{'kind': 'Pod', 'metadata': {'name': 'p'}}", Reason::bad_request, "is a Pod"},
      {"version set", "configmaps", "default", "{'metadata': {'name': 'p', 'resourceVersion': '1'}}", Reason::internal, "resourceVersion should not be set"},
      {"no containers", "pods", "default", "{'metadata': {'name': 'p'}, 'spec': {}}", Reason::invalid, "spec.containers: Required value"},
      {"no spec", "computedomains", "default", "{'metadata': {'name': 'd'}}", Reason::invalid, "spec: Required value"},
      {"no template name", "computedomains", "default", "{'metadata': {'name': 'd'}, 'spec': {'channel': {'resourceClaimTemplate': {}}}}", Reason::invalid, "spec.channel.resourceClaimTemplate.name: Required value"},
      {"bad template name", "computedomains", "default", "{'metadata': {'name': 'd'}, 'spec': {'channel': {'resourceClaimTemplate': {'name': '../x'}}}}", Reason::invalid, "should match"},
      {"unknown mode", "computedomains", "default", "{'metadata': {'name': 'd'}, 'spec': {'channel': {'allocationMode': 'Some', 'resourceClaimTemplate': {'name': 't'}}}}", Reason::invalid, "supported values: \"All\", \"Single\""},
      {"negative nodes", "computedomains", "default", "{'metadata': {'name': 'd'}, 'spec': {'numNodes': -1, 'channel': {'resourceClaimTemplate': {'name': 't'}}}}", Reason::invalid, "greater than or equal to 0"},
      {"text for a number", "computedomains", "default", "{'metadata': {'name': 'd'}, 'spec': {'numNodes': '1', 'channel': {'resourceClaimTemplate': {'name': 't'}}}}", Reason::invalid, "must be of type integer"},
      {"two daemons of one node", "computedomaincliques", "default", "{'metadata': {'name': 'd'}, 'daemons': [{'nodeName': 'n', 'ipAddress': 'a', 'cliqueID': 'c'}, {'nodeName': 'n', 'ipAddress': 'b', 'cliqueID': 'c'}]}", Reason::invalid, "Duplicate value"},
      {"event of another namespace", "events", "default", "{'metadata': {'name': 'e'}, 'involvedObject': {'namespace': 'x'}}", Reason::invalid, "does not match event.namespace"},
  }));
  // clang-format on
  INFO(row.why);
  World world;
  auto made = world.registry.create(world.of(row.resource), row.space, json(row.object));
  REQUIRE_FALSE(made);
  CHECK(why(made.error()) == row.reason);
  CHECK_THAT(made.error().doing, Catch::Contains(row.says));
}

TEST_CASE("a name that exists is refused, a generated one is not", "[sandbox][registry]") {
  World world;
  world.domain("d");
  auto again = world.registry.create(world.of("computedomains"), "default",
                                     json("{'metadata': {'name': 'd'}, 'spec': {'channel': "
                                          "{'resourceClaimTemplate': {'name': 't'}}}}"));
  REQUIRE_FALSE(again);
  CHECK(why(again.error()) == Reason::already_exists);
  CHECK(again.error().doing == "computedomains.resource.nvidia.com \"d\" already exists");
  ItemPtr first = world.make("configmaps", "default", "{'metadata': {'generateName': 'x-'}}");
  ItemPtr second = world.make("configmaps", "default", "{'metadata': {'generateName': 'x-'}}");
  CHECK(first->name() != second->name());
  CHECK(first->name().starts_with("x-"));
}

TEST_CASE("an update based on an old version conflicts", "[sandbox][registry]") {
  World world;
  ItemPtr first = world.make("configmaps", "default", "{'metadata': {'name': 'c'}, 'data': {}}");
  const Resource& maps = world.of("configmaps");
  auto second = world.registry.update(maps, first->key(), changed(first, "{'data': {'a': '1'}}"));
  REQUIRE(second);
  auto late = world.registry.update(maps, first->key(), changed(first, "{'data': {'b': '1'}}"));
  REQUIRE_FALSE(late);
  CHECK(why(late.error()) == Reason::conflict);
}

TEST_CASE("a write that changes nothing keeps the version", "[sandbox][registry]") {
  World world;
  ItemPtr domain = world.domain("d");
  auto same = world.registry.update(world.of("computedomains"), domain->key(), domain->json());
  REQUIRE(same);
  CHECK((*same)->version() == domain->version());
  auto patched = world.registry.patch(world.of("computedomains"), domain->key(),
                                      json("{'metadata': {}}"), PatchForm::merge);
  REQUIRE(patched);
  CHECK((*patched)->version() == domain->version());
}

TEST_CASE("the spec of a ComputeDomain cannot be changed", "[sandbox][registry][crd]") {
  World world;
  ItemPtr domain = world.domain("d");
  auto refused = world.registry.patch(world.of("computedomains"), domain->key(),
                                      json("{'spec': {'numNodes': 2}}"), PatchForm::merge);
  REQUIRE_FALSE(refused);
  CHECK(why(refused.error()) == Reason::invalid);
  CHECK_THAT(refused.error().doing, Catch::Contains("spec is immutable"));
}

TEST_CASE("status and the rest are written separately", "[sandbox][registry]") {
  World world;
  const Resource& domains = world.of("computedomains");
  ItemPtr domain = world.domain("d");
  Json both =
      changed(domain, "{'metadata': {'labels': {'a': 'b'}}, 'status': {'status': 'Ready'}}");
  auto main = world.registry.update(domains, domain->key(), both);
  REQUIRE(main);
  CHECK_FALSE(find((*main)->json(), "status"));
  CHECK(find((*main)->json(), "metadata/labels/a"));
  CHECK(int_or((*main)->json(), "metadata/generation", 0) == 1);

  auto status = world.registry.patch(
      domains, domain->key(),
      json("{'metadata': {'labels': {'a': null}}, 'status': {'status': 'Ready'}}"),
      PatchForm::merge, {.subresource = "status"});
  REQUIRE(status);
  CHECK(text_or_empty((*status)->json(), "status/status") == "Ready");
  CHECK(find((*status)->json(), "metadata/labels/a"));
  CHECK(int_or((*status)->json(), "metadata/generation", 0) == 1);
}

TEST_CASE("unknown fields are pruned, or refused when the writer is strict",
          "[sandbox][registry][crd]") {
  World world;
  std::string text =
      "{'metadata': {'name': 'd'}, 'spec': {'colour': 1, 'channel': {'resourceClaimTemplate': "
      "{'name': 't'}}}}";
  auto strict =
      world.registry.create(world.of("computedomains"), "default", json(text), {.strict = true});
  REQUIRE_FALSE(strict);
  CHECK(why(strict.error()) == Reason::bad_request);
  CHECK_THAT(strict.error().doing,
             Catch::Contains("strict decoding error: unknown field \"spec.colour\""));
  ItemPtr made = world.make("computedomains", "default", text);
  CHECK_FALSE(find(made->json(), "spec/colour"));
}

TEST_CASE("a dry run checks but stores nothing", "[sandbox][registry]") {
  World world;
  std::uint64_t version = world.registry.version();
  auto made = world.registry.create(world.of("pods"), "default", json(pod_text), {.dry_run = true});
  REQUIRE(made);
  CHECK(world.registry.version() == version);
  CHECK_FALSE(world.registry.find(world.of("pods"), {"default", "p"}));
}

TEST_CASE("an object with finalizers goes when the last one is removed", "[sandbox][registry]") {
  World world;
  const Resource& domains = world.of("computedomains");
  ItemPtr domain = world.domain("d", ", 'finalizers': ['resource.nvidia.com/computeDomain']");
  auto removed = world.registry.remove(domains, domain->key());
  REQUIRE(removed);
  CHECK_FALSE(removed->gone);
  CHECK(removed->item->deleting());
  CHECK(int_or(removed->item->json(), "metadata/generation", 0) == 2);

  auto added = world.registry.patch(
      domains, domain->key(),
      json("{'metadata': {'finalizers': ['resource.nvidia.com/computeDomain', 'a/b']}}"),
      PatchForm::merge);
  REQUIRE_FALSE(added);
  CHECK_THAT(added.error().doing, Catch::Contains("no new finalizers can be added"));

  auto last =
      world.registry.patch(domains, domain->key(),
                           json("[{'op': 'test', 'path': '/metadata/finalizers/0', 'value': "
                                "'resource.nvidia.com/computeDomain'}, {'op': 'remove', 'path': "
                                "'/metadata/finalizers/0'}]"),
                           PatchForm::json);
  REQUIRE(last);
  CHECK_FALSE(world.registry.find(domains, domain->key()));
}

TEST_CASE("a running pod ends in grace and goes when its kubelet confirms", "[sandbox][registry]") {
  World world;
  const Resource& pods = world.of("pods");
  world.make("pods", "default", pod_text);
  REQUIRE(world.registry.bind({"default", "p"}, "n"));
  auto again = world.registry.bind({"default", "p"}, "m");
  REQUIRE_FALSE(again);
  CHECK(why(again.error()) == Reason::conflict);

  auto asked = world.registry.remove(pods, {"default", "p"});
  REQUIRE(asked);
  CHECK_FALSE(asked->gone);
  CHECK(int_or(asked->item->json(), "metadata/deletionGracePeriodSeconds", 0) == 30);
  auto confirmed = world.registry.remove(pods, {"default", "p"}, {.grace = 0});
  REQUIRE(confirmed);
  CHECK(confirmed->gone);
}

TEST_CASE("a pod without a node goes at once", "[sandbox][registry]") {
  World world;
  world.make("pods", "default", pod_text);
  auto removed = world.registry.remove(world.of("pods"), {"default", "p"});
  REQUIRE(removed);
  CHECK(removed->gone);
}

TEST_CASE("deletion keeps its preconditions", "[sandbox][registry]") {
  World world;
  ItemPtr domain = world.domain("d");
  auto other = world.registry.remove(world.of("computedomains"), domain->key(), {.uid = "x"});
  REQUIRE_FALSE(other);
  CHECK(why(other.error()) == Reason::conflict);
  auto old = world.registry.remove(world.of("computedomains"), domain->key(), {.version = "1"});
  REQUIRE_FALSE(old);
  CHECK(why(old.error()) == Reason::conflict);
  CHECK(world.registry.remove(world.of("computedomains"), domain->key(),
                              {.uid = std::string(domain->uid())}));
}

TEST_CASE("pages together are the whole list and share one version", "[sandbox][registry]") {
  World world;
  for (int i = 0; i < 7; ++i) world.domain("d" + std::to_string(i));
  ListQuery query{.limit = 3};
  std::vector<std::string> names;
  std::set<std::uint64_t> versions;
  for (;;) {
    auto page = world.registry.list(world.of("computedomains"), query);
    REQUIRE(page);
    for (const ItemPtr& item : page->items) names.emplace_back(item->name());
    versions.insert(page->version);
    if (page->continue_from.empty()) break;
    world.domain("e" + std::to_string(names.size()));
    query.continue_from = page->continue_from;
  }
  CHECK(names.size() >= 7);
  CHECK(std::ranges::is_sorted(names));
  CHECK(versions.size() == 1);
}

TEST_CASE("a continue token that outlived the history has expired", "[sandbox][registry]") {
  World world;
  for (int i = 0; i < 3; ++i) world.domain("d" + std::to_string(i));
  auto page = world.registry.list(world.of("computedomains"), {.limit = 1});
  REQUIRE(page);
  world.domain("x");
  world.registry.feed().forget(world.registry.version());
  auto next = world.registry.list(world.of("computedomains"),
                                  {.limit = 1, .continue_from = page->continue_from});
  REQUIRE_FALSE(next);
  CHECK(why(next.error()) == Reason::expired);
}

TEST_CASE("applied fields that are no longer applied are removed", "[sandbox][registry]") {
  World world;
  const Resource& maps = world.of("configmaps");
  WriteOptions mine{.manager = "m"};
  auto made = world.registry.patch(maps, {"default", "c"}, json("{'data': {'a': '1', 'b': '2'}}"),
                                   PatchForm::apply, mine);
  REQUIRE(made);
  REQUIRE(
      world.registry.patch(maps, {"default", "c"}, json("{'data': {'z': '3'}}"), PatchForm::merge));
  auto second = world.registry.patch(maps, {"default", "c"}, json("{'data': {'a': '9'}}"),
                                     PatchForm::apply, mine);
  REQUIRE(second);
  CHECK(*find((*second)->json(), "data") == json("{'a': '9', 'z': '3'}"));
}

TEST_CASE("nothing new enters a namespace that is going", "[sandbox][registry]") {
  World world;
  world.make("namespaces", "", "{'metadata': {'name': 'n'}}");
  auto removed = world.registry.remove(world.of("namespaces"), {"", "n"});
  REQUIRE(removed);
  CHECK_FALSE(removed->gone);
  auto made =
      world.registry.create(world.of("configmaps"), "n", json("{'metadata': {'name': 'c'}}"));
  REQUIRE_FALSE(made);
  CHECK(why(made.error()) == Reason::forbidden);
  REQUIRE(world.registry.finalize_space("n"));
  CHECK_FALSE(world.registry.find(world.of("namespaces"), {"", "n"}));
}
