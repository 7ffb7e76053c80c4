#include "imex/connections.hpp"

#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "fake/time.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

using namespace nvdra;
using namespace nvdra::imex;

namespace {

std::string member(const std::string& state, const std::string& host, const std::string& to_0,
                   const std::string& to_1, const std::string& to_2) {
  const auto to = [](int id, const std::string& word) {
    return fmt::format(R"("{}": {{"host": "x", "status": "{}", "changed": true}})", id, word);
  };
  return fmt::format(
      R"({{"status": "{}", "host": "{}", "connections": {{{}, {}, {}}}, "version": "1"}})", state,
      host, to(0, to_0), to(1, to_1), to(2, to_2));
}

// Members 0 and 1 are READY, 2 is away; `there` and `back` are the words between 0 and 1.
std::string domain_text(const std::string& there = "CONNECTED",
                        const std::string& back = "CONNECTED") {
  return fmt::format(R"({{"nodes": {{"0": {}, "1": {}, "2": {}}}, "status": "DEGRADED"}})",
                     member("READY", "10.0.0.1", "CONNECTED", there, "NEVER_CONNECTED"),
                     member("READY", "10.0.0.2", back, "CONNECTED", "NEVER_CONNECTED"),
                     member("UNAVAILABLE", "10.0.0.3", "INVALID", "INVALID", "INVALID"));
}

DomainView domain(const std::string& there = "CONNECTED", const std::string& back = "CONNECTED") {
  Result<DomainView> view = parse_domain(domain_text(there, back));
  REQUIRE(view);
  return *view;
}

// Connections with a clock that stands, and answers that the test gives.
struct Looks {
  Looks() {
    asio::co_spawn(loop, connections.run(),
                   asio::bind_cancellation_slot(
                       cancel.slot(), [this](std::exception_ptr, Result<void>) { ended = true; }));
    time.settle();
  }
  ~Looks() {
    cancel.emit(asio::cancellation_type::terminal);
    time.settle();
    CHECK(ended);
  }
  void be(std::optional<std::int64_t> id) {
    own = id;
    news.notify();
    time.settle();
  }
  void pass(Duration length) {
    for (Duration step = 1s; length > Duration{}; length -= step) time.advance(step);
  }

  asio::io_context loop{1};
  fake::FakeTime time{loop};
  Event news{loop.get_executor()};
  Result<DomainView> answer = domain();
  std::optional<std::int64_t> own;
  int asked = 0;
  int changes = 0;
  bool ended = false;
  asio::cancellation_signal cancel;
  Connections connections{{.time = time,
                           .news = news,
                           .ask = [this]() -> Async<Result<DomainView>> {
                             ++asked;
                             co_return answer;
                           },
                           .own = [this] { return own; },
                           .changed = [this] { ++changes; }}};
};

}  // namespace

TEST_CASE("a READY peer that is not connected in either direction is found (report 47)",
          "[imex][connections]") {
  CHECK(unconnected(domain(), 0).empty());
  CHECK(unconnected(domain("NEVER_CONNECTED"), 0) ==
        std::vector<Unconnected>{{1, "10.0.0.2", "NEVER_CONNECTED"}});
  CHECK(unconnected(domain("CONNECTED", "DISCONNECTED"), 0) ==
        std::vector<Unconnected>{{1, "10.0.0.2", "DISCONNECTED"}});
  // The same seen by the other one.
  CHECK(unconnected(domain("NEVER_CONNECTED"), 1) ==
        std::vector<Unconnected>{{0, "10.0.0.1", "NEVER_CONNECTED"}});
}

TEST_CASE("nothing follows from members that are away, nor from an own entry that is not READY",
          "[imex][connections]") {
  CHECK(unconnected(domain("NEVER_CONNECTED"), 2).empty());
  CHECK(unconnected(domain("NEVER_CONNECTED"), 7).empty());
  CHECK(unconnected({}, 0).empty());
}

TEST_CASE("a peer that is refused for its nodes file is a fault though it is not reached",
          "[imex][connections]") {
  DomainView view = domain("NODE_MAP_MISMATCH");
  view[1].state = "UNAVAILABLE";
  CHECK(unconnected(view, 0) == std::vector<Unconnected>{{1, "10.0.0.2", "NODE_MAP_MISMATCH"}});
  CHECK(unconnected(view, 0).front().refused());
}

TEST_CASE("answers of the tool that are no domain are errors", "[imex][connections]") {
  for (const char* text :
       {"", "Connectivity Table Legend:", "[]", "{}", R"({"nodes": []})", R"({"nodes": {"x": {}}})",
        R"({"nodes": {"0": {"connections": {"y": 1}}}})"})
    CHECK_FALSE(parse_domain(text));
  // Keys that are missing say nothing.
  const Result<DomainView> bare = parse_domain(R"({"nodes": {"0": {"status": "READY"}, "1": 5}})");
  REQUIRE(bare);
  CHECK(unconnected(*bare, 0).empty());
}

TEST_CASE("a missing connection counts once every answer has shown it for half a minute",
          "[imex][connections]") {
  Looks looks;
  looks.be(0);
  looks.answer = domain("NEVER_CONNECTED");
  looks.pass(first_look + settled_after - 1s);
  CHECK(looks.connections.faults().empty());
  looks.answer = domain();
  looks.pass(between_looks);
  looks.answer = domain("NEVER_CONNECTED");
  looks.pass(settled_after);
  CHECK(looks.connections.faults().empty());
  looks.pass(calm_look + settled_after);
  CHECK(looks.connections.faults().size() == 1);
  CHECK(looks.changes == 1);
  looks.answer = domain();
  looks.pass(between_looks);
  CHECK(looks.connections.faults().empty());
  CHECK(looks.changes == 2);
}

TEST_CASE("without an answer nothing is judged, and a known fault is dropped",
          "[imex][connections]") {
  Looks looks;
  looks.be(0);
  looks.answer = domain("NEVER_CONNECTED");
  looks.pass(first_look + settled_after + between_looks);
  REQUIRE(looks.connections.faults().size() == 1);
  looks.answer = refuse("no answer");
  looks.pass(between_looks);
  CHECK(looks.connections.faults().empty());
}

TEST_CASE("connections are looked at rarely, and not at all without peers", "[imex][connections]") {
  Looks looks;
  looks.pass(100s);
  CHECK(looks.asked == 0);
  looks.be(0);
  looks.pass(first_look);
  CHECK(looks.asked == 1);
  looks.pass(600s);
  CHECK(looks.asked == 11);
  for (int i = 0; i < 600; ++i) {  // news all the time
    looks.news.notify();
    looks.pass(1s);
  }
  CHECK(looks.asked <= 11 + 61);
  looks.be(std::nullopt);
  looks.pass(between_looks);
  const int before = looks.asked;
  looks.pass(600s);
  CHECK(looks.asked == before);
}

TEST_CASE("a tool that hangs, fails or babbles is an error within the limit (report 47)",
          "[imex][connections]") {
  fake::TempDir files;
  const auto ask = [&](const std::string& script) {
    files.write("ctl", "#!/bin/sh\n" + script + "\n");
    ::chmod(files.path("ctl").c_str(), 0755);
    asio::io_context loop(1);
    RealTime time;
    std::optional<Result<DomainView>> got;
    asio::co_spawn(
        loop,
        [&]() -> Async<void> {
          Question question;
          question.command.program = files.path("ctl");
          question.limit = 200ms;
          got.emplace(co_await ask_domain(std::move(question), time));
        },
        asio::detached);
    loop.run();
    return *got;
  };
  CHECK(ask("cat <<'E'\n" + domain_text() + "\nE"));
  CHECK_THAT(ask("sleep 60").error().text(), Catch::Contains("ctl"));
  CHECK_THAT(ask("echo no daemon >&2; exit 255").error().text(), Catch::Contains("no daemon"));
  CHECK_FALSE(ask("echo Connectivity Table Legend:"));
}
