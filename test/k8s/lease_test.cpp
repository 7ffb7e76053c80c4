#include "k8s/lease.hpp"

#include "catch.hpp"
#include "k8s/lease_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::lease_test;

TEST_CASE("who may take a lease", "[k8s][lease]") {
  struct Row {
    const char* why;
    LeaseRecord record;
    Duration later;
    Move expected;
  };
  const Row row = GENERATE(values<Row>({
      {"held by us", held("me"), 0s, Move::renew},
      {"held by us, for long not renewed", held("me"), 1h, Move::renew},
      {"released", held("", 1s), 0s, Move::take},
      {"never held", {}, 0s, Move::take},
      {"held, changed just now", held("other"), 0s, Move::wait},
      {"held, silent for less than its own term", held("other"), 15s - 1ms, Move::wait},
      {"held, silent for its own term", held("other"), 15s, Move::take},
      {"its own term counts, not ours", held("other", 60s), 59s, Move::wait},
      {"held without a term", held("other", 0s), 0s, Move::take},
      {"a name that begins like ours is another", held("me2"), 1s, Move::wait},
  }));
  INFO(row.why);
  Instant seen = Instant{} + 100h;
  CHECK(next_move({row.record, seen}, "me", seen + row.later) == row.expected);
}

TEST_CASE("lease times that cannot work are refused with a sentence", "[k8s][lease]") {
  struct Row {
    Duration duration, deadline, retry;
    const char* names;  // "" = accepted
  };
  const Row row = GENERATE(values<Row>({
      {15s, 10s, 2s, ""},
      {10s, 10s, 2s, "lease's duration is 10s"},
      {15s, 2400ms, 2s, "renew deadline is 2.4s"},
      {15s, 2401ms, 2s, ""},
      {15s, 10s, 0s, "retry period is 0s"},
      {15s, -1s, 2s, "renew deadline is -1s"},
      {999ms, 500ms, 10ms, "at least 1s"},
  }));
  Result<void> checked = check({{"n", "l"}, "me", row.duration, row.deadline, row.retry});
  INFO((checked ? "accepted" : checked.error().text()));
  CHECK(checked.has_value() == std::string_view(row.names).empty());
  if (!checked) CHECK(checked.error().text().find(row.names) != std::string::npos);
}

TEST_CASE("an absent lease is created, renewed every 2 s, and released when the work has ended",
          "[k8s][lease]") {
  World w;
  w.work_takes = 5s;
  w.start();
  CHECK(w.working);
  CHECK(w.election.leading());
  CHECK(w.election.holder() == "me");
  LeaseRecord created = w.server.record();
  CHECK(created.holder == "me");
  CHECK(created.duration == 15s);
  CHECK(created.transitions == 0);
  CHECK(created.acquire_time == rfc3339_micro(w.time.wall()));
  CHECK(w.server.log == std::vector<std::string>{"GET 404", "POST 201"});

  w.pass(2s);
  CHECK(w.server.log.back() == "PUT 200");
  CHECK(w.server.writes == 2);
  CHECK(w.server.record().acquire_time == created.acquire_time);
  CHECK(w.server.record().renew_time == rfc3339_micro(w.time.wall()));
  CHECK(w.server.record().transitions == 0);

  w.pass(3s);
  REQUIRE(w.ended);
  CHECK(w.ended->has_value());
  CHECK(w.worked);
  CHECK_FALSE(w.election.leading());
  CHECK_FALSE(w.election.lost());
  CHECK(w.holder_at_end_of_work == "me");
  LeaseRecord released = w.server.record();
  CHECK(released.holder.empty());
  CHECK(released.duration == 1s);
  CHECK(released.transitions == 0);
  CHECK(released.renew_time == released.acquire_time);
  CHECK(w.server.all_urgent);
}

TEST_CASE("a held lease is taken only after its holder has been silent for its own term",
          "[k8s][lease]") {
  World w;
  w.server.put(held("other"));
  w.start();
  CHECK_FALSE(w.working);
  CHECK(w.election.holder() == "other");
  w.pass(14s);
  CHECK(w.server.writes == 0);
  w.server.put({"other", 15s, "x", "2020-01-01T00:00:14.000000Z", 3});  // renews in time
  w.pass(14s);
  CHECK(w.server.writes == 0);
  w.pass(6s);
  CHECK(w.working);
  CHECK(w.server.record().holder == "me");
  CHECK(w.server.record().transitions == 4);
  CHECK(w.server.record().acquire_time != "x");  // ours
}

TEST_CASE("a released lease is taken at the next try, 2 s to 4.4 s later", "[k8s][lease]") {
  World w;  // random 0.5: every 3.2 s
  w.server.put(held("other"));
  w.start();
  w.server.put(held("", 1s));
  w.pass(3100ms);
  CHECK_FALSE(w.working);
  w.pass(100ms);
  CHECK(w.working);
}

TEST_CASE("taking a lease that another one takes at the same moment fails and waits on",
          "[k8s][lease]") {
  World w;
  w.server.put(held("", 1s));
  w.server.faults = {fake::answer(200, to_text(*w.server.lease))};
  w.server.put(held("other"));  // after our read
  w.start();
  CHECK(w.server.log == std::vector<std::string>{"GET fault", "PUT 409"});
  CHECK_FALSE(w.working);
  w.pass(10s);
  CHECK_FALSE(w.working);
  CHECK(w.server.record().holder == "other");
}

TEST_CASE("a server that is down longer than the renew deadline ends the work before run returns",
          "[k8s][lease]") {
  World w;
  w.start();
  w.pass(4s);
  REQUIRE(w.working);
  w.server.down = true;
  w.pass(11900ms);
  CHECK(w.working);
  CHECK_FALSE(w.ended);
  w.pass(200ms);
  CHECK_FALSE(w.working);
  CHECK_FALSE(w.worked);
  REQUIRE(w.ended);
  REQUIRE_FALSE(w.ended->has_value());
  CHECK(w.election.lost());
  CHECK(w.ended->error().text().find("lost the lease n/l: not renewed for 10s") == 0);
  CHECK(w.ended->error().text().find("connect") != std::string::npos);
}

TEST_CASE("a short failure of the server costs nothing", "[k8s][lease]") {
  World w;
  w.start();
  w.pass(4s);
  w.server.down = true;
  w.pass(9s);
  w.server.down = false;
  w.pass(30s);
  CHECK(w.working);
  CHECK_FALSE(w.ended);
  CHECK(w.server.record().transitions == 0);
}

TEST_CASE("one request that hangs does not use up the renew deadline", "[k8s][lease]") {
  World w;
  w.start();
  w.pass(1s);
  w.server.hangs = true;
  w.pass(2s);  // the renewal after 2 s hangs now
  w.server.hangs = false;
  w.pass(20s);
  CHECK(w.working);
  CHECK_FALSE(w.ended);
}

TEST_CASE("the release of a server that hangs is given up after the renew deadline",
          "[k8s][lease]") {
  World w;
  w.work_takes = 3s;
  w.start();
  w.server.hangs = true;
  w.pass(3s);
  CHECK(w.worked);
  CHECK_FALSE(w.ended);
  w.pass(9900ms);
  CHECK_FALSE(w.ended);
  w.pass(200ms);
  REQUIRE(w.ended);
  CHECK(w.ended->has_value());
}
