#include "dra/slice_plan.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::dra;

namespace {

const SliceOwner owner{"compute-domain.nvidia.com", NodeName("node-a"), "uid-a", "v1"};

std::vector<SliceDevice> two_devices() {
  return {{"daemon-0", {{"type", "daemon"}, {"id", std::int64_t{0}}}},
          {"channel-0", {{"type", "channel"}, {"id", std::int64_t{0}}}}};
}

std::vector<SliceDevice> channels(int count) {
  std::vector<SliceDevice> devices;
  for (int i = 0; i < count; ++i)
    devices.push_back(
        {"channel-" + std::to_string(i), {{"type", "channel"}, {"id", std::int64_t{i}}}});
  return devices;
}

k8s::ObjectPtr slice(const std::string& name, std::int64_t generation, std::int64_t count,
                     JsonArray devices) {
  JsonObject object{
      {"metadata",
       JsonObject{{"name", name},
                  {"uid", "u-" + name},
                  {"resourceVersion", "7"},
                  {"ownerReferences",
                   JsonArray{JsonObject{{"kind", "Node"}, {"name", "node-a"}, {"uid", "uid-a"}}}}}},
      {"spec", JsonObject{{"driver", owner.driver},
                          {"nodeName", "node-a"},
                          {"pool", JsonObject{{"name", "node-a"},
                                              {"generation", generation},
                                              {"resourceSliceCount", count}}},
                          {"devices", std::move(devices)}}}};
  return std::make_shared<const k8s::Object>(std::move(object));
}

k8s::ObjectPtr changed(const k8s::ObjectPtr& from, std::string_view patch) {
  Json object = from->json();
  merge_patch(object, *parse_json(patch));
  return std::make_shared<const k8s::Object>(std::move(object));
}

// "-name" removed, "~name @generation" updated, "+index @generation" created; in order.
std::vector<std::string> told(const SlicePlan& plan) {
  std::vector<std::string> lines;
  auto generation = [](const Json& object) {
    return " @" + std::to_string(int_or(object, "spec/pool/generation", -1));
  };
  for (const auto& each : plan.removes) lines.push_back("-" + each.name);
  for (const auto& each : plan.updates) lines.push_back("~" + each.name + generation(each.patch));
  for (const auto& each : plan.creates)
    lines.push_back("+" + std::to_string(each.slice) + generation(each.object));
  return lines;
}

}  // namespace

TEST_CASE("the first slice is the one that schedulers and the original know", "[dra][slices]") {
  SlicePlan plan = plan_slices(owner, slice_devices(two_devices(), "v1"), {});
  REQUIRE(told(plan) == std::vector<std::string>{"+0 @1"});
  CHECK(plan.creates[0].object == *parse_json(R"({
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
    "metadata": {
      "generateName": "00000-compute-domain.nvidia.com-node-a-",
      "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "uid-a",
                           "controller": true}]},
    "spec": {
      "driver": "compute-domain.nvidia.com", "nodeName": "node-a",
      "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
      "devices": [
        {"name": "channel-0", "attributes": {"type": {"string": "channel"}, "id": {"int": 0}}},
        {"name": "daemon-0", "attributes": {"type": {"string": "daemon"}, "id": {"int": 0}}}]}})"));
}

TEST_CASE("in v1beta1 attributes are one level deeper", "[dra][slices]") {
  SliceOwner old = owner;
  old.version = "v1beta1";
  SlicePlan plan = plan_slices(old, slice_devices(two_devices(), "v1beta1"), {});
  REQUIRE(plan.creates.size() == 1);
  const Json& object = plan.creates[0].object;
  CHECK(text_or_empty(object, "apiVersion") == "resource.k8s.io/v1beta1");
  CHECK(array_or_empty(object, "spec/devices")[0] == *parse_json(R"({"name": "channel-0",
    "basic": {"attributes": {"id": {"int": 0}, "type": {"string": "channel"}}}})"));
  CHECK(slice_devices(two_devices(), "v1beta2") == slice_devices(two_devices(), "v1"));
}

TEST_CASE("the order in which devices are given does not matter", "[dra][slices]") {
  auto devices = two_devices();
  auto wish = slice_devices(devices, "v1");
  std::ranges::reverse(devices);
  CHECK(slice_devices(devices, "v1") == wish);
  CHECK(plan_slices(owner, wish, {slice("00000-x-a", 4, 1, wish[0])}).empty());
}

TEST_CASE("what is found decides what is done", "[dra][slices]") {
  const auto wish = slice_devices(two_devices(), "v1");
  const auto right = slice("00000-x-a", 4, 1, wish[0]);
  const auto wrong = slice("00000-x-a", 4, 1, {});
  struct Row {
    const char* why;
    std::vector<k8s::ObjectPtr> found;
    std::vector<std::string> done;
  };
  const Row row = GENERATE_COPY(values<Row>({
      {"as wished", {right}, {}},
      {"other devices: in place, same generation", {wrong}, {"~00000-x-a @4"}},
      {"other count: in place", {slice("00000-x-a", 4, 2, wish[0])}, {"~00000-x-a @4"}},
      {"a name without a number", {slice("x-a", 4, 1, wish[0])}, {"-x-a", "+0 @5"}},
      {"too few digits", {slice("0-x-a", 4, 1, wish[0])}, {"-0-x-a", "+0 @5"}},
      {"beyond the last", {right, slice("00001-x-b", 4, 1, wish[0])}, {"-00001-x-b"}},
      {"twice the same", {right, slice("00000-x-b", 4, 1, wish[0])}, {"-00000-x-b"}},
      {"an older generation", {slice("00000-x-0", 3, 1, wish[0]), right}, {"-00000-x-0"}},
      {"of another Node object",
       {changed(right, R"({"metadata":{"ownerReferences":[{"kind":"Node","uid":"old"}]}})")},
       {"-00000-x-a", "+0 @5"}},
      {"of another pool",
       {changed(right, R"({"spec":{"pool":{"name":"other"}}})")},
       {"-00000-x-a", "+0 @5"}},
      {"being deleted",
       {changed(right, R"({"metadata":{"deletionTimestamp":"2026-01-02T03:04:05Z"}})")},
       {"+0 @5"}},
  }));
  INFO(row.why);
  CHECK(told(plan_slices(owner, wish, row.found)) == row.done);
}

TEST_CASE("a removal names the very object, and an update its version", "[dra][slices]") {
  const auto wish = slice_devices(two_devices(), "v1");
  SlicePlan plan =
      plan_slices(owner, wish, {slice("00000-x-a", 4, 1, {}), slice("bad", 4, 1, wish[0])});
  REQUIRE(plan.removes.size() == 1);
  CHECK(plan.removes[0].uid == "u-bad");
  CHECK(plan.removes[0].version == "7");
  REQUIRE(plan.updates.size() == 1);
  CHECK(text_or_empty(plan.updates[0].patch, "metadata/resourceVersion") == "7");
  CHECK(array_or_empty(plan.updates[0].patch, "spec/devices") == wish[0]);
}

TEST_CASE("more than 128 devices are spread over slices of one generation", "[dra][slices]") {
  struct Row {
    int devices;
    std::size_t slices;
  };
  const Row row = GENERATE(values<Row>({{0, 1}, {1, 1}, {128, 1}, {129, 2}, {2048, 16}}));
  auto wish = slice_devices(channels(row.devices), "v1");
  CHECK(wish.size() == row.slices);
  SlicePlan plan = plan_slices(owner, wish, {});
  REQUIRE(plan.creates.size() == row.slices);
  std::size_t count = 0;
  for (const auto& create : plan.creates) {
    count += array_or_empty(create.object, "spec/devices").size();
    CHECK(int_or(create.object, "spec/pool/resourceSliceCount", 0) ==
          static_cast<std::int64_t>(row.slices));
    CHECK(int_or(create.object, "spec/pool/generation", 0) == 1);
  }
  CHECK(count == static_cast<std::size_t>(row.devices));
}

TEST_CASE("of several slices only what must be is changed", "[dra][slices]") {
  auto wish = slice_devices(channels(300), "v1");
  REQUIRE(wish.size() == 3);
  std::vector<k8s::ObjectPtr> found{slice("00000-x", 2, 3, wish[0]),
                                    slice("00001-x", 2, 3, wish[1]),
                                    slice("00002-x", 2, 3, wish[2])};
  CHECK(plan_slices(owner, wish, found).empty());
  SECTION("one differs: it keeps the generation") {
    found[1] = slice("00001-x", 2, 3, {});
    CHECK(told(plan_slices(owner, wish, found)) == std::vector<std::string>{"~00001-x @2"});
  }
  SECTION("two differ: a new generation for all") {
    found[1] = slice("00001-x", 2, 3, {});
    found[2] = slice("00002-x", 2, 3, {});
    CHECK(told(plan_slices(owner, wish, found)) ==
          std::vector<std::string>{"~00000-x @3", "~00001-x @3", "~00002-x @3"});
  }
  SECTION("one is missing: a new generation for all") {
    found.pop_back();
    CHECK(told(plan_slices(owner, wish, found)) ==
          std::vector<std::string>{"~00000-x @3", "~00001-x @3", "+2 @3"});
  }
}
