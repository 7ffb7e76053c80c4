#include "k8s/reflector.hpp"

#include "catch.hpp"
#include "fake/captured_log.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"
#include "k8s/informer.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fmt/format.h>

#include <cstdlib>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

const ResourceType pods{"", "v1", "pods", "Pod"};

std::string item(std::string_view name, std::string_view version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","uid":"u-{}","resourceVersion":"{}"}}}})", name,
                     name, version);
}
fake::Reply listing(std::string_view version, std::string_view items = "") {
  return fake::answer(
      200, fmt::format(R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}"}},"items":[{}]}})",
                       version, items));
}
std::string event(std::string_view type, std::string_view object) {
  return fmt::format(R"({{"type":"{}","object":{}}})"
                     "\n",
                     type, object);
}
std::string bookmark(std::string_view version) {
  return event("BOOKMARK",
               fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"}}}})", version));
}
std::string expired() {
  return event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");
}

// A reflector of pods, and the API server's side of the dialogue.
struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  fake::ScriptedTransport api{loop.get_executor(), time};
  Client client{api, time};
  double random = 0;
  Informer informer{loop.get_executor(), client, time, [this] { return random; }, {.type = pods}};
  asio::cancellation_signal stop;
  bool ended = false;

  void list(fake::Reply reply) { api.expect("GET /api/v1/pods?limit=*", std::move(reply)); }
  std::shared_ptr<fake::Body> watch() { return api.expect_stream("GET /api/v1/pods?watch=*"); }
  void no_watch(fake::Reply reply) { api.expect("GET /api/v1/pods?watch=*", std::move(reply)); }

  void start() {
    asio::co_spawn(loop, informer.run(),
                   asio::bind_cancellation_slot(
                       stop.slot(), [this](std::exception_ptr, Result<void>) { ended = true; }));
    time.settle();
  }
  ~World() {
    stop.emit(asio::cancellation_type::terminal);
    time.settle();
    if (!ended) std::abort();
  }

  // "list", "watch 10", …
  std::vector<std::string> asked() const {
    std::vector<std::string> calls;
    for (const HttpRequest& request : api.requests) {
      std::string key = "resourceVersion=";
      std::size_t at = request.target.find(key);
      if (request.target.find("watch=") == std::string::npos) {
        calls.push_back("list");
      } else {
        std::string rest = request.target.substr(at + key.size());
        calls.push_back("watch " + rest.substr(0, rest.find('&')));
      }
    }
    return calls;
  }
  // "a@1 b@2"
  std::string seen() const {
    std::string text;
    for (const ObjectPtr& o : informer.store.all())
      text += (text.empty() ? "" : " ") + std::string(o->name()) + "@" + std::string(o->version());
    return text;
  }
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("what follows the end of a watch", "[k8s][reflector]") {
  struct Row {
    const char* why;
    WatchEnd end;
    Resume expected;
  };
  const Row row = GENERATE(values<Row>({
      {"the server's time limit", {.lasted = 180s}, Resume::watch},
      {"ended at once", {}, Resume::watch},
      {"silent connection", {Errc::timed_out, true, false, 210s}, Resume::watch},
      {"cut connection", {Errc::disconnected, true, true, 5s}, Resume::watch},
      {"version expired", {Errc::gone, true, false, 0s}, Resume::list},
      {"version expired when opening", {Errc::gone, false}, Resume::list},
      {"version not understood", {Errc::bad_request, false}, Resume::list},
      {"type not served any more", {Errc::not_found, false}, Resume::list},
      {"no permission", {Errc::forbidden, false}, Resume::watch},
      {"no server", {Errc::not_sent, false}, Resume::watch},
      {"no server, for long", {Errc::not_sent, false, false, 0s, 4}, Resume::list},
      {"healthy after failures", {Errc::disconnected, true, true, 5s, 4}, Resume::watch},
  }));
  INFO(row.why);
  CHECK(resume(row.end) == row.expected);
}

TEST_CASE("a reflector lists, watches from the list's version and applies what it sees",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10", item("a", "7") + "," + item("b", "9")));
  auto body = w.watch();
  w.start();
  CHECK(w.asked() == Calls{"list", "watch 10"});
  CHECK(w.informer.store.ready());
  CHECK(w.seen() == "a@7 b@9");
  body->push(event("ADDED", item("c", "11")) + event("MODIFIED", item("a", "12")));
  body->push(event("DELETED", item("b", "13")));
  w.time.settle();
  CHECK(w.seen() == "a@12 c@11");
  CHECK(w.informer.trouble().empty());
}

TEST_CASE("watches last differently long, below the limits of load balancers", "[k8s][reflector]") {
  struct Row {
    double random;
    const char* limit;
  };
  const Row row = GENERATE(values<Row>({{0, "timeoutSeconds=150"}, {0.99, "timeoutSeconds=209"}}));
  World w;
  w.random = row.random;
  w.list(listing("10"));
  w.watch();
  w.start();
  CHECK_THAT(w.api.requests.back().target, Catch::EndsWith(row.limit));
}

TEST_CASE("the version advances with every event and bookmark", "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  auto first = w.watch();
  w.start();
  first->push(event("ADDED", item("a", "12")));
  first->push(bookmark("20"));
  first->end();
  auto second = w.watch();
  w.time.settle();
  CHECK(w.asked() == Calls{"list", "watch 10", "watch 20"});
  second->push(event("DELETED", item("a", "33")));
  second->cut();
  w.watch();
  w.time.settle();
  CHECK(w.asked() == Calls{"list", "watch 10", "watch 20", "watch 33"});
}

TEST_CASE("after 410 the reflector lists again and watches from the new version",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10", item("a", "7")));
  auto first = w.watch();
  w.start();
  first->push(bookmark("12"));
  first->end();
  auto second = w.watch();
  w.time.advance(10s);
  second->push(expired());
  w.list(listing("90", item("b", "80")));
  w.watch();
  w.time.settle();
  CHECK(w.asked() == Calls{"list", "watch 10", "watch 12", "list", "watch 90"});
  CHECK(w.seen() == "b@80");
}

TEST_CASE("a version that expires as soon as it is listed does not make a hot loop",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  w.no_watch(fake::refusal(410, "Expired"));
  w.list(listing("11"));
  w.no_watch(fake::refusal(410, "Expired"));
  w.start();
  CHECK(w.asked() == Calls{"list", "watch 10"});
  w.time.advance(800ms);
  CHECK(w.asked() == Calls{"list", "watch 10", "list", "watch 11"});
}

TEST_CASE("failing lists are paced from 0.8 s to 30 s, and the store stays as it was",
          "[k8s][reflector]") {
  World w;
  w.api.otherwise = [](const HttpRequest&) { return fake::broken(Errc::not_sent); };
  w.start();
  std::size_t calls = 1;
  for (Duration pause : {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    w.time.advance(pause - 1ms);
    CHECK(w.asked().size() == calls);
    w.time.advance(1ms);
    CHECK(w.asked().size() == ++calls);
  }
  CHECK_FALSE(w.informer.store.ready());
  CHECK(w.informer.trouble().find("list pods") == 0);
}

TEST_CASE("pacing begins anew after two minutes without a failure", "[k8s][reflector]") {
  World w;
  for (int i = 0; i < 3; ++i) w.list(fake::broken(Errc::not_sent));
  w.list(listing("10"));
  auto body = w.watch();
  w.start();
  for (Duration pause : {800ms, 1600ms, 3200ms}) w.time.advance(pause);
  CHECK(w.informer.store.ready());
  w.time.advance(119s);
  w.time.advance(2s);
  body->end();
  w.no_watch(fake::broken(Errc::not_sent));
  w.watch();
  w.time.settle();
  CHECK(w.asked().size() == 6);
  w.time.advance(800ms);
  CHECK(w.asked().size() == 7);
}

TEST_CASE("a watch that ends at once without an event counts as a failure", "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  for (int i = 0; i < 3; ++i) w.watch()->end();
  w.start();
  CHECK(w.asked().size() == 2);
  CHECK(w.informer.trouble() == "watch pods: ended at once without an event");
  w.time.advance(800ms);
  CHECK(w.asked().size() == 3);
  w.time.advance(1599ms);
  CHECK(w.asked().size() == 3);
  w.time.advance(1ms);
  CHECK(w.asked().size() == 4);
}

TEST_CASE("a watch that has stood for a while is followed by the next one at once",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  auto body = w.watch();
  w.start();
  w.time.advance(180s);
  body->end();
  w.watch();
  w.time.settle();
  CHECK(w.asked() == Calls{"list", "watch 10", "watch 10"});
}

TEST_CASE("a watch that cannot be opened five times in a row leads to a new list",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  for (int i = 0; i < 5; ++i) w.no_watch(fake::refusal(504, "Timeout"));
  w.list(listing("4"));
  w.watch();
  w.start();
  for (int i = 0; i < 5; ++i) w.time.advance(31s);
  CHECK(w.asked() == Calls{"list", "watch 10", "watch 10", "watch 10", "watch 10", "watch 10",
                           "list", "watch 4"});
}

TEST_CASE("a malformed object is skipped and counted, in a list and in a watch",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10", item("a", "7") + R"(,{"metadata":{}},)" + item("b", "8")));
  auto body = w.watch();
  w.start();
  CHECK(w.seen() == "a@7 b@8");
  CHECK(w.informer.skipped() == 1);
  body->push("{nonsense}\n" + event("ADDED", R"({"metadata":{"resourceVersion":"11"}})") +
             event("ADDED", item("c", "12")));
  w.time.settle();
  CHECK(w.seen() == "a@7 b@8 c@12");
  CHECK(w.informer.skipped() == 3);
  CHECK(w.asked() == Calls{"list", "watch 10"});
}

TEST_CASE("a watch that delivers only nonsense is given up", "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  auto body = w.watch();
  w.watch();
  w.start();
  std::string nonsense;
  for (int i = 0; i < 200; ++i) nonsense += "nonsense\n";
  body->push(nonsense);
  w.time.settle();
  CHECK_FALSE(body->open());
  w.time.advance(800ms);
  CHECK(w.asked() == Calls{"list", "watch 10", "watch 10"});
}

TEST_CASE("a missing permission is logged at warning and told as trouble until it is cured",
          "[k8s][reflector]") {
  fake::CapturedLog log({.verbosity = 0});
  World w;
  w.list(fake::refusal(403, "Forbidden", "pods is forbidden"));
  w.list(listing("10"));
  w.watch();
  w.start();
  CHECK(w.informer.trouble().find("list pods") == 0);
  CHECK(w.informer.trouble().find("pods is forbidden") != std::string::npos);
  REQUIRE(log.lines().size() == 1);
  CHECK(log.lines()[0].starts_with("W"));
  w.time.advance(800ms);
  CHECK(w.informer.trouble().empty());
}

TEST_CASE("listing and the filled cache are logged from reflector.cpp at levels 3 and 2",
          "[k8s][reflector]") {
  auto [verbosity, populated, listing_lines] =
      GENERATE(table<int, std::size_t, std::size_t>({{1, 0, 0}, {2, 1, 0}, {3, 1, 1}}));
  fake::CapturedLog log({.verbosity = verbosity});
  World w;
  w.list(listing("10"));
  w.watch();
  w.start();
  CHECK(log.count("reflector.cpp") == populated + listing_lines);
  CHECK(log.count("\"Caches populated\" type=\"Pod\"") == populated);
  CHECK(log.count("\"Listing and watching\" type=\"Pod\"") == listing_lines);
}

TEST_CASE("an own write that the watch never shows is forgotten when the watch has come past it",
          "[k8s][reflector]") {
  World w;
  w.list(listing("10"));
  auto body = w.watch();
  w.start();
  w.informer.store.note_written(Object(boost::json::parse(item("mine", "15"))));
  body->push(event("ADDED", item("other", "14")));
  w.time.settle();
  CHECK(w.seen() == "mine@15 other@14");
  body->push(bookmark("15"));
  w.time.settle();
  CHECK(w.seen() == "other@14");
}

TEST_CASE("waiting for a store has a limit, and its error says what is missing",
          "[k8s][reflector]") {
  World w;
  w.api.otherwise = [](const HttpRequest&) {
    return fake::refusal(404, "NotFound", "the server could not find the requested resource");
  };
  w.start();
  std::optional<Result<void>> ready;
  asio::co_spawn(
      w.loop, [&]() -> Async<void> { ready = co_await w.informer.wait_ready(5s); }, asio::detached);
  w.time.advance(4s);
  CHECK_FALSE(ready);
  w.time.advance(1s);
  REQUIRE(ready);
  CHECK(ready->error().text().find("list pods") == 0);
  CHECK(ready->error().text().find("could not find the requested resource") != std::string::npos);
}
