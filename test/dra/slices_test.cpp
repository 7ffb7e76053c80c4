#include "dra/slices.hpp"

#include "base/task_group.hpp"
#include "catch.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

// An API server that knows one Node and holds ResourceSlices; its watch tells of every change.
struct SliceServer {
  SliceServer(asio::io_context& loop, Time& time) : transport(loop.get_executor(), time) {
    transport.otherwise = [this](const k8s::HttpRequest& request) { return answer(request); };
    watch = expect_watch();
  }

  std::shared_ptr<fake::Body> expect_watch() {
    return transport.expect_stream("GET /apis/resource.k8s.io/" + version +
                                   "/resourceslices?watch=true*");
  }

  fake::Reply answer(const k8s::HttpRequest& request) {
    std::string line = request.method + " " + request.target;
    lines.push_back(line.substr(0, line.find('?')));
    if (line == "GET /apis/resource.k8s.io")
      return fake::answer(200,
                          R"({"kind":"APIGroup","versions":[{"version":")" + version + R"("}]})");
    if (line == "GET /api/v1/nodes/node-a")
      return fake::answer(200, R"({"kind":"Node","metadata":{"name":"node-a","uid":"uid-a"}})");
    if (!request.target.starts_with("/apis/resource.k8s.io/" + version + "/"))
      return fake::refusal(404, "NotFound", "no such path");
    std::string path = request.target.substr(0, request.target.find('?'));
    std::string name = path.substr(path.rfind('/') + 1);
    if (request.method == "GET") return list();
    if (request.method == "POST") return create(*parse_json(request.body));
    if (request.method == "PATCH") return patch(name, *parse_json(request.body));
    if (request.method == "DELETE") return slices.erase(name), fake::answer(200, "{}");
    return fake::refusal(500, "InternalError");
  }
  fake::Reply list() const {
    JsonArray items;
    for (const auto& [name, object] : slices) items.push_back(object);
    Json body = JsonObject{{"kind", "ResourceSliceList"},
                           {"metadata", JsonObject{{"resourceVersion", std::to_string(clock)}}},
                           {"items", std::move(items)}};
    return fake::answer(200, to_text(body));
  }
  fake::Reply create(Json object) {
    if (refuse_creation) return fake::refusal(403, "Forbidden", "no rights");
    std::string name = std::string(text_or_empty(object, "metadata/generateName")) + "x";
    object.as_object()["metadata"].as_object()["name"] = name;
    stamp(object, "u" + std::to_string(++clock));
    if (drop_attributes)
      for (Json& device : object.at("spec").at("devices").as_array())
        device.as_object().erase("attributes");
    slices[name] = object;
    tell("ADDED", object);
    return fake::answer(201, to_text(object));
  }
  fake::Reply patch(const std::string& name, const Json& change) {
    Json& object = slices.at(name);
    if (text_or_empty(change, "metadata/resourceVersion") !=
        text_or_empty(object, "metadata/resourceVersion"))
      return fake::refusal(409, "Conflict");
    merge_patch(object, change);
    stamp(object, std::string(text_or_empty(object, "metadata/uid")));
    tell("MODIFIED", object);
    return fake::answer(200, to_text(object));
  }
  void remove_all() {
    for (auto& [name, object] : std::exchange(slices, {})) {
      stamp(object, std::string(text_or_empty(object, "metadata/uid")));
      tell("DELETED", object);
    }
  }
  void stamp(Json& object, const std::string& uid) {
    JsonObject& metadata = object.as_object()["metadata"].as_object();
    metadata["uid"] = uid;
    metadata["resourceVersion"] = std::to_string(++clock);
  }
  void tell(const char* type, const Json& object) {
    watch->push(to_text(JsonObject{{"type", type}, {"object", object}}) + "\n");
  }
  std::size_t count(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::count(lines, line));
  }

  fake::ScriptedTransport transport;
  std::shared_ptr<fake::Body> watch;
  std::string version = "v1";
  std::map<std::string, Json> slices;
  std::vector<std::string> lines;
  bool refuse_creation = false;
  bool drop_attributes = false;
  int clock = 10;
};

const std::string post = "POST /apis/resource.k8s.io/v1/resourceslices";

struct World {
  World() { begin(); }
  ~World() {
    stop.emit(asio::cancellation_type::terminal);
    time.settle();
    CHECK(ended);
  }
  void begin() {
    asio::co_spawn(loop, publisher.run(),
                   asio::bind_cancellation_slot(
                       stop.slot(), [this](std::exception_ptr, Result<void>) { ended = true; }));
  }
  void advance(Duration length) {
    for (Duration step{}; step < length; step += 100ms) time.advance(100ms);
  }

  asio::io_context loop{1};
  fake::FakeTime time{loop};
  SliceServer api{loop, time};
  k8s::Client client{api.transport, time};
  SlicePublisher publisher{loop.get_executor(),
                           client,
                           time,
                           [] { return 0.0; },
                           {"driver.example",
                            NodeName("node-a"),
                            {{"channel-0", {{"type", "channel"}, {"id", std::int64_t{0}}}}}}};
  asio::cancellation_signal stop;
  bool ended = false;
};

}  // namespace

TEST_CASE("the devices are published once and then left alone", "[dra][slices]") {
  World world;
  world.advance(60s);
  CHECK(world.api.count(post) == 1);
  REQUIRE(world.api.slices.size() == 1);
  const Json& slice = world.api.slices.begin()->second;
  CHECK(text_or_empty(slice, "spec/nodeName") == "node-a");
  CHECK(text_or_empty(array_or_empty(slice, "metadata/ownerReferences")[0], "uid") == "uid-a");
  CHECK(world.publisher.published());
  CHECK(world.publisher.trouble().empty());
  CHECK(world.api.transport.surprises.empty());
}

TEST_CASE("slices that somebody deletes are soon there again", "[dra][slices]") {
  World world;
  world.advance(60s);
  world.api.remove_all();
  world.advance(1s);
  CHECK(world.api.slices.size() == 1);
  CHECK(world.api.count(post) == 2);
}

TEST_CASE("other devices are published in place", "[dra][slices]") {
  World world;
  world.advance(10s);
  std::vector<SliceDevice> devices(2);
  devices[0].name = "channel-0";
  devices[1].name = "daemon-0";
  world.publisher.set_devices(devices);
  world.advance(5s);
  REQUIRE(world.api.slices.size() == 1);
  const Json& slice = world.api.slices.begin()->second;
  CHECK(array_or_empty(slice, "spec/devices").size() == 2);
  CHECK(int_or(slice, "spec/pool/generation", 0) == 1);
  CHECK(world.api.count(post) == 1);
  CHECK(world.api.count("PATCH /apis/resource.k8s.io/v1/resourceslices/"
                        "00000-driver.example-node-a-x") == 1);
}

TEST_CASE("when the API version is gone another one is chosen", "[dra][slices]") {
  World world;
  world.advance(10s);
  REQUIRE(world.publisher.published());
  world.api.version = "v1beta1";
  auto old_watch = std::exchange(world.api.watch, world.api.expect_watch());
  world.api.slices.clear();
  old_watch->push(
      to_text(JsonObject{
          {"type", "DELETED"},
          {"object", *parse_json(R"({"metadata":{"name":"00000-driver.example-node-a-x",)"
                                 R"("uid":"u11","resourceVersion":"90"}})")}}) +
      "\n");
  world.advance(30s);
  CHECK(world.publisher.published());
  REQUIRE(world.api.slices.size() == 1);
  CHECK(text_or_empty(world.api.slices.begin()->second, "apiVersion") == "resource.k8s.io/v1beta1");
  CHECK(nvdra::find(array_or_empty(world.api.slices.begin()->second, "spec/devices")[0],
                    "basic/attributes/type"));
}

TEST_CASE("a field that the server drops is dropped from the wish", "[dra][slices]") {
  World world;
  world.api.drop_attributes = true;
  world.advance(120s);
  CHECK(world.publisher.published());
  CHECK(world.api.count(post) == 1);
  CHECK(world.api.slices.size() == 1);
}

TEST_CASE("a quarrel about the slices is paced", "[dra][slices]") {
  World world;
  world.advance(10s);
  std::size_t before = world.api.count(post);
  for (int i = 0; i < 600; ++i) {
    world.api.remove_all();
    world.time.advance(100ms);
  }
  CHECK(world.api.count(post) - before < 15);
  world.advance(60s);
  CHECK(world.api.slices.size() == 1);
}

TEST_CASE("a refusal is kept for readers and tried again", "[dra][slices]") {
  World world;
  world.api.refuse_creation = true;
  world.advance(5s);
  CHECK_FALSE(world.publisher.published());
  CHECK(world.publisher.trouble().find("no rights") != std::string::npos);
  CHECK(world.api.count(post) > 1);
  CHECK(world.api.count(post) < 10);
  world.api.refuse_creation = false;
  world.advance(30s);
  CHECK(world.publisher.published());
  CHECK(world.publisher.trouble().empty());
  CHECK(world.api.slices.size() == 1);
}

TEST_CASE("what was published can be withdrawn", "[dra][slices]") {
  World world;
  world.advance(10s);
  world.stop.emit(asio::cancellation_type::terminal);
  world.time.settle();
  REQUIRE(world.ended);
  CHECK(world.api.slices.size() == 1);  // the end of the publisher alone takes nothing away
  std::optional<Result<void>> withdrawn;
  asio::co_spawn(
      world.loop, [&]() -> Async<void> { withdrawn = co_await world.publisher.withdraw(); },
      asio::detached);
  world.time.settle();
  REQUIRE(withdrawn);
  CHECK(*withdrawn);
  CHECK(world.api.slices.empty());
  CHECK_FALSE(world.publisher.published());
}
