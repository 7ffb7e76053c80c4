#include "k8s/events.hpp"

#include "catch.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

const ObjectReference pod{"v1", "Pod", {"n", "p"}, "uid-p"};
const ObjectReference node{"v1", "Node", {"", "worker"}, "uid-w"};

struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  fake::ScriptedTransport api{loop.get_executor(), time};
  Client client{api, time};
  EventRecorder recorder{loop.get_executor(), client, time, "tester", "host-1"};
  asio::cancellation_signal stop;

  World() {
    api.otherwise = [](const HttpRequest& request) { return fake::answer(201, accepted(request)); };
  }
  static std::string accepted(const HttpRequest& request) {
    return request.method == "POST" ? request.body : R"({"metadata":{"name":"x"}})";
  }
  void start() {
    asio::co_spawn(
        loop, recorder.run(),
        asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr, const Result<void>&) {}));
    time.settle();
  }
  ~World() {
    stop.emit(asio::cancellation_type::terminal);
    time.settle();
  }
  void warn(std::string message) {
    recorder.record(EventType::warning, pod, "Broken", std::move(message));
    time.settle();
  }
  Json body(std::size_t i) const { return boost::json::parse(api.requests.at(i).body); }
  std::size_t count(std::string_view method) const {
    std::size_t n = 0;
    for (const HttpRequest& request : api.requests) n += request.method == method;
    return n;
  }
};

EventBook::Moment at(Duration since_start) {
  return {Instant{} + since_start, WallClock::time_point{}};
}
using Send = EventBook::Send;

}  // namespace

TEST_CASE("an event says what happened to which object, and who saw it", "[k8s][events]") {
  World w;
  w.start();
  w.warn("it fell");
  REQUIRE(w.api.requests.size() == 1);
  CHECK(w.api.requests[0].method == "POST");
  CHECK(w.api.requests[0].target.starts_with("/api/v1/namespaces/n/events"));
  Json event = w.body(0);
  CHECK(text_or_empty(event, "metadata/name").starts_with("p."));
  CHECK(text_or_empty(event, "metadata/namespace") == "n");
  CHECK(event.at("involvedObject") == Json{{"apiVersion", "v1"},
                                           {"kind", "Pod"},
                                           {"name", "p"},
                                           {"uid", "uid-p"},
                                           {"namespace", "n"}});
  CHECK(text_or_empty(event, "type") == "Warning");
  CHECK(text_or_empty(event, "reason") == "Broken");
  CHECK(text_or_empty(event, "message") == "it fell");
  CHECK(event.at("source") == Json{{"component", "tester"}, {"host", "host-1"}});
  CHECK(text_or_empty(event, "firstTimestamp") == rfc3339(w.time.wall()));
  CHECK(int_or(event, "count", 0) == 1);
}

TEST_CASE("an event of a cluster-scoped object goes to the default namespace", "[k8s][events]") {
  World w;
  w.start();
  w.recorder.record(EventType::normal, node, "Labelled", "done");
  w.time.settle();
  REQUIRE(w.api.requests.size() == 1);
  CHECK(w.api.requests[0].target.starts_with("/api/v1/namespaces/default/events"));
  CHECK_FALSE(find(w.body(0), "involvedObject/namespace"));
  CHECK(text_or_empty(w.body(0), "type") == "Normal");
}

TEST_CASE("the same event again raises its count and its last time", "[k8s][events]") {
  World w;
  w.start();
  w.warn("it fell");
  std::string name(text_or_empty(w.body(0), "metadata/name"));
  w.time.advance(30s);
  w.warn("it fell");
  REQUIRE(w.api.requests.size() == 2);
  CHECK(w.api.requests[1].method == "PATCH");
  CHECK(w.api.requests[1].target.starts_with("/api/v1/namespaces/n/events/" + name));
  CHECK(w.body(1) == Json{{"count", 2}, {"lastTimestamp", rfc3339(w.time.wall())}});
  w.warn("it fell differently");
  REQUIRE(w.api.requests.size() == 3);
  CHECK(w.api.requests[2].method == "POST");
  CHECK(text_or_empty(w.body(2), "metadata/name") != name);
}

TEST_CASE("an event that the server has forgotten is made again with its count", "[k8s][events]") {
  World w;
  w.start();
  w.warn("it fell");
  w.api.expect("PATCH *", fake::refusal(404, "NotFound"));
  w.warn("it fell");
  REQUIRE(w.api.requests.size() == 3);
  CHECK(w.api.requests[2].method == "POST");
  CHECK(int_or(w.body(2), "count", 0) == 2);
  CHECK(text_or_empty(w.body(2), "message") == "it fell");
}

TEST_CASE("repetitions before the first sending are one request with the full count",
          "[k8s][events]") {
  World w;
  for (int i = 0; i < 5; ++i) w.warn("it fell");
  w.start();
  REQUIRE(w.api.requests.size() == 1);
  CHECK(int_or(w.body(0), "count", 0) == 5);
}

TEST_CASE("different events of one object are limited to 25 and one per 5 minutes after",
          "[k8s][events]") {
  EventBook book;
  for (int i = 0; i < 25; ++i)
    CHECK(book.decide("p", std::to_string(i), "e", at(0s)).send == Send::create);
  CHECK(book.decide("p", "26", "e", at(0s)).send == Send::nothing);
  CHECK(book.decide("p", "26", "e", at(299s)).send == Send::nothing);
  CHECK(book.decide("p", "26", "e", at(300s)).send == Send::create);
  CHECK(book.decide("p", "27", "e", at(301s)).send == Send::nothing);
  CHECK(book.decide("other", "26", "e", at(301s)).send == Send::create);
}

TEST_CASE("quiet times save up no more than one burst", "[k8s][events]") {
  EventBook book;
  CHECK(book.decide("p", "first", "e", at(0s)).send == Send::create);
  for (int i = 0; i < 25; ++i)
    CHECK(book.decide("p", std::to_string(i), "e", at(10000s)).send == Send::create);
  CHECK(book.decide("p", "26", "e", at(10001s)).send == Send::nothing);
}

TEST_CASE("an event that comes again and again is counted, but sent seldom", "[k8s][events]") {
  EventBook book;
  CHECK(book.decide("p", "e", "first", at(0s)).send == Send::create);
  int sent = 0;
  for (int i = 1; i <= 100; ++i) sent += book.decide("p", "e", "x", at(1s * i)).send == Send::raise;
  CHECK(sent == 25);
  EventBook::Decision later = book.decide("p", "e", "x", at(400s));
  CHECK(later.send == Send::raise);
  CHECK(later.entry.count == 102);
  CHECK(later.entry.name == "first");
}

TEST_CASE("what is remembered of past events is bounded", "[k8s][events]") {
  EventBook book({}, 2);
  CHECK(book.decide("a", "e", "1", at(1s)).send == Send::create);
  CHECK(book.decide("b", "e", "2", at(2s)).send == Send::create);
  CHECK(book.decide("a", "e", "x", at(3s)).send == Send::raise);
  CHECK(book.decide("c", "e", "3", at(4s)).send == Send::create);  // b is forgotten
  CHECK(book.decide("a", "e", "x", at(5s)).send == Send::raise);
  CHECK(book.decide("b", "e", "4", at(6s)).send == Send::create);
}

TEST_CASE("an event that cannot be sent is tried three times, then dropped", "[k8s][events]") {
  World w;
  for (int i = 0; i < 3; ++i) w.api.expect("POST *", fake::broken(Errc::disconnected));
  w.start();
  w.warn("it fell");
  CHECK(w.api.requests.size() == 1);
  w.time.advance(1s);
  CHECK(w.api.requests.size() == 2);
  CHECK(w.recorder.dropped() == 0);
  w.time.advance(5s);
  CHECK(w.api.requests.size() == 3);
  CHECK(w.recorder.dropped() == 1);
  CHECK(w.recorder.waiting() == 0);
}

TEST_CASE("an event that the server refuses is dropped at once", "[k8s][events]") {
  World w;
  w.api.expect("POST *", fake::refusal(403, "Forbidden"));
  w.start();
  w.warn("it fell");
  CHECK(w.recorder.dropped() == 1);
  w.time.advance(10s);
  CHECK(w.api.requests.size() == 1);
}

TEST_CASE("an attempt whose answer was lost does not make a second event", "[k8s][events]") {
  World w;
  w.api.expect("POST *", fake::broken(Errc::disconnected));
  w.api.expect("POST *", fake::refusal(409, "AlreadyExists"));
  w.start();
  w.warn("it fell");
  w.time.advance(1s);
  REQUIRE(w.api.requests.size() == 2);
  CHECK(text_or_empty(w.body(0), "metadata/name") == text_or_empty(w.body(1), "metadata/name"));
  CHECK(w.recorder.dropped() == 0);
}

TEST_CASE("the queue is bounded, and what does not fit is counted", "[k8s][events]") {
  World w;
  for (int i = 0; i < 1100; ++i) {
    ObjectReference one = pod;
    one.uid = std::to_string(i);
    w.recorder.record(EventType::normal, one, "Made", "x");
  }
  CHECK(w.recorder.waiting() == 1000);
  CHECK(w.recorder.dropped() == 100);
}

TEST_CASE("what was being sent when the recorder was stopped is sent by flush", "[k8s][events]") {
  World w;
  w.api.expect("POST *", {.status = 201, .after = 20s});
  w.start();
  w.warn("first");
  w.warn("second");
  CHECK(w.api.requests.size() == 1);
  w.stop.emit(asio::cancellation_type::terminal);
  w.time.settle();
  CHECK(w.recorder.waiting() == 2);
  bool flushed = false;
  asio::co_spawn(
      w.loop,
      [&]() -> Async<void> {
        co_await w.recorder.flush(5s);
        flushed = true;
      },
      asio::detached);
  w.time.settle();
  CHECK(flushed);
  REQUIRE(w.api.requests.size() == 3);
  CHECK(text_or_empty(w.body(1), "message") == "first");
  CHECK(text_or_empty(w.body(2), "message") == "second");
}

TEST_CASE("flush ends at its limit", "[k8s][events]") {
  World w;
  w.api.expect("POST *", {.status = 201, .after = 20s});
  w.warn("it fell");
  bool flushed = false;
  asio::co_spawn(
      w.loop,
      [&]() -> Async<void> {
        co_await w.recorder.flush(5s);
        flushed = true;
      },
      asio::detached);
  w.time.advance(4999ms);
  CHECK_FALSE(flushed);
  w.time.advance(1ms);
  CHECK(flushed);
}

TEST_CASE("a long message is cut between characters", "[k8s][events]") {
  World w;
  w.start();
  w.warn(std::string(1023, 'x') + "\xC3\xA4 and more");
  REQUIRE(w.api.requests.size() == 1);
  CHECK(text_or_empty(w.body(0), "message") == std::string(1023, 'x'));
}

TEST_CASE("a reference names the object it was made from", "[k8s][events]") {
  Object object(boost::json::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u"}})"));
  ObjectReference reference = reference_of(object);
  CHECK(reference.api_version == "v1");
  CHECK(reference.kind == "Pod");
  CHECK(reference.key == ObjectKey{"n", "p"});
  CHECK(reference.uid == "u");
}
