#include "catch.hpp"
#include "world.hpp"

using namespace nvdra;
using namespace nvdra::sandbox;
using Kind = FeedEvent::Kind;

namespace {

std::vector<Kind> kinds(Subscription& reader) {
  std::vector<Kind> seen;
  while (auto event = reader.next()) seen.push_back(event->kind);
  return seen;
}

Filter labelled(const char* selector) {
  return {.labels = *parse_label_selector(selector)};
}

}  // namespace

TEST_CASE("a watch from the past sees every change after its version", "[sandbox][feed]") {
  World world;
  const Resource& domains = world.of("computedomains");
  ItemPtr domain = world.domain("d");
  REQUIRE(world.registry.patch(domains, domain->key(), json("{'metadata': {'labels': {'a': 'b'}}}"),
                               PatchForm::merge));
  REQUIRE(world.registry.remove(domains, domain->key()));
  auto reader = world.registry.feed().subscribe(domains, {},
                                                std::stoull(std::string(domain->version())), [] {});
  REQUIRE(reader);
  CHECK(kinds(*reader) == std::vector{Kind::modified, Kind::deleted});
}

TEST_CASE("an object that enters or leaves a selection is added to or deleted from it",
          "[sandbox][feed]") {
  World world;
  const Resource& domains = world.of("computedomains");
  int woken = 0;
  auto reader = world.registry.feed().subscribe(domains, labelled("a=b"), world.registry.version(),
                                                [&] { ++woken; });
  ItemPtr domain = world.domain("d");
  CHECK(woken == 0);
  auto set = [&](const char* labels) {
    REQUIRE(world.registry.patch(domains, domain->key(),
                                 json(std::string("{'metadata': {'labels': ") + labels + "}}"),
                                 PatchForm::merge));
  };
  set("{'a': 'b'}");
  set("{'c': 'd'}");
  set("{'a': null}");
  set("{'c': null}");
  CHECK(woken == 3);
  CHECK(kinds(*reader) == std::vector{Kind::added, Kind::modified, Kind::deleted});
}

TEST_CASE("a watch from before the kept history is refused", "[sandbox][feed]") {
  World world({.bounds = {.history = 4}});
  const Resource& domains = world.of("computedomains");
  std::uint64_t start = world.registry.version();
  for (int i = 0; i < 6; ++i) world.domain("d" + std::to_string(i));
  CHECK_FALSE(world.registry.feed().subscribe(domains, {}, start, [] {}));
  CHECK(world.registry.feed().subscribe(domains, {}, world.registry.feed().oldest(domains), [] {}));
}

TEST_CASE("a reader that falls behind expires instead of holding memory", "[sandbox][feed]") {
  World world({.bounds = {.backlog = 3}});
  const Resource& domains = world.of("computedomains");
  auto reader = world.registry.feed().subscribe(domains, {}, world.registry.version(), [] {});
  for (int i = 0; i < 4; ++i) world.domain("d" + std::to_string(i));
  CHECK(reader->expired());
  CHECK(reader->waiting() == 0);
}

TEST_CASE("selectors choose what Kubernetes' do", "[sandbox][selector]") {
  struct Row {
    const char* selector;
    bool first;   // {'a': 'b', 'x': ''}
    bool second;  // {'c': 'd'}
  };
  const Row row = GENERATE(values<Row>({
      {"a=b", true, false},
      {"a==b,x", true, false},
      {"a!=b", false, true},
      {"a in (b, c)", true, false},
      {"a notin (b,c)", false, true},
      {"!a", false, true},
      {"x=", true, false},
      {"", true, true},
  }));
  INFO(row.selector);
  auto selector = parse_label_selector(row.selector);
  REQUIRE(selector);
  CHECK(selector->matches_labels(json("{'a': 'b', 'x': ''}").get_object()) == row.first);
  CHECK(selector->matches_labels(json("{'c': 'd'}").get_object()) == row.second);
}

TEST_CASE("a field that a resource does not offer for selection is refused",
          "[sandbox][selector]") {
  World world;
  CHECK(parse_field_selector("spec.driver=a,spec.nodeName=b", world.of("resourceslices")));
  auto refused = parse_field_selector("spec.driver=a", world.of("pods"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().doing == "field label not supported: spec.driver");
  CHECK_FALSE(parse_label_selector("a in b"));
}
