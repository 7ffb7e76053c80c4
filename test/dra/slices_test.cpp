#include "dra/slices.hpp"

#include "base/task_group.hpp"
#include "catch.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

// An API server that knows one Node and holds ResourceSlices; its watch tells of every change.
struct SliceServer {
  SliceServer(asio::io_context& loop, Time& time) : transport(loop.get_executor(), time) {
    transport.otherwise = [this](const k8s::HttpRequest& request) { return answer(request); };
    watch = transport.expect_stream("GET /apis/resource.k8s.io/v1/resourceslices?watch=true*");
  }

  fake::Reply answer(const k8s::HttpRequest& request) {
    std::string line = request.method + " " + request.target;
    lines.push_back(line.substr(0, line.find('?')));
    if (line == "GET /apis/resource.k8s.io")
      return fake::answer(200,
                          R"({"kind":"APIGroup","versions":[{"version":")" + version + R"("}]})");
    if (line == "GET /api/v1/nodes/node-a")
      return fake::answer(200, R"({"kind":"Node","metadata":{"name":"node-a","uid":"uid-a"}})");
    if (request.method == "GET") return list();
    if (request.method == "POST") return create(*parse_json(request.body));
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
    slices[name] = object;
    tell("ADDED", object);
    return fake::answer(201, to_text(object));
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
