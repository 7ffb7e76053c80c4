// How holding a lease ends.
#include "catch.hpp"
#include "k8s/lease.hpp"
#include "k8s/lease_world.hpp"

using namespace nvdra;
using namespace nvdra::k8s;
using namespace nvdra::k8s::lease_test;

TEST_CASE("another holder ends the work at once, and the lease is left to it", "[k8s][lease]") {
  World w;
  w.start();
  w.server.put(held("thief"));
  w.pass(2100ms);
  CHECK_FALSE(w.working);
  REQUIRE(w.ended);
  CHECK(w.ended->error().text() == "lost the lease n/l: thief holds it now");
  CHECK(w.server.record().holder == "thief");
}

TEST_CASE("a renewal that meets a foreign edit of the lease reads it and keeps the edit",
          "[k8s][lease]") {
  World w;
  w.start();
  Json edited = *w.server.lease;
  edited.get_object()["metadata"].get_object()["labels"] = JsonObject{{"a", "b"}};
  edited.get_object()["metadata"].get_object()["resourceVersion"] = "77";
  edited.get_object()["spec"].get_object()["strategy"] = "OldestEmulationVersion";
  w.server.lease = edited;
  w.server.log.clear();
  w.pass(2s);
  CHECK(w.server.log == std::vector<std::string>{"PUT 409", "GET 200", "PUT 200"});
  CHECK(w.working);
  CHECK(text_or_empty(*w.server.lease, "metadata/labels/a") == "b");
  CHECK(text_or_empty(*w.server.lease, "spec/strategy") == "OldestEmulationVersion");
}

TEST_CASE("a lease that somebody deletes is made again by its holder", "[k8s][lease]") {
  World w;
  w.start();
  w.server.lease.reset();
  w.pass(2s);
  CHECK(w.working);
  REQUIRE(w.server.lease);
  CHECK(w.server.record().holder == "me");
}

TEST_CASE("cancelled, the work ends first, then the lease is released", "[k8s][lease]") {
  World w;
  w.start();
  w.pass(3s);
  w.stop.emit(asio::cancellation_type::terminal);
  w.time.settle();
  CHECK_FALSE(w.working);
  CHECK_FALSE(w.worked);
  CHECK(w.holder_at_end_of_work == "me");
  CHECK(w.server.record().holder.empty());
  REQUIRE(w.thrown);
  CHECK(is_cancellation(w.thrown));
}

TEST_CASE("the lease is held for as long as the work needs to stop", "[k8s][lease]") {
  World w;
  w.work_needs_to_stop = 4s;
  w.start();
  w.pass(3s);
  bool by_loss = GENERATE(false, true);
  if (by_loss) {
    w.server.put(held("thief"));
    w.pass(1100ms);
    CHECK_FALSE(w.election.leading());
  } else {
    w.stop.emit(asio::cancellation_type::terminal);
  }
  w.pass(3800ms);
  CHECK(w.working);
  CHECK_FALSE(w.ended);
  CHECK(w.server.record().holder == (by_loss ? "thief" : "me"));
  w.pass(300ms);
  CHECK_FALSE(w.working);
  CHECK(w.ended);
  CHECK(w.server.record().holder == (by_loss ? "thief" : ""));
}

TEST_CASE("cancelled while it waits for leadership, a lease of others is not touched",
          "[k8s][lease]") {
  World w;
  w.server.put(held("other"));
  w.start();
  w.pass(5s);
  w.stop.emit(asio::cancellation_type::terminal);
  w.time.settle();
  REQUIRE(w.thrown);
  CHECK(is_cancellation(w.thrown));
  CHECK(w.server.writes == 0);
}

TEST_CASE("the lease is released also when the work fails or throws", "[k8s][lease]") {
  World w;
  w.work_takes = 3s;
  bool throws = GENERATE(false, true);
  w.work_throws = throws;
  w.work_result = refuse("the work is broken");
  w.start();
  w.pass(3s);
  REQUIRE(w.ended);
  CHECK(bool(w.thrown) == throws);
  if (!throws) CHECK(w.ended->error().text() == "the work is broken");
  CHECK_FALSE(w.election.lost());
  CHECK(w.server.record().holder.empty());
}

TEST_CASE("a renewal whose answer was lost does not hinder the release", "[k8s][lease]") {
  World w;
  w.work_takes = 3s;
  w.start();
  w.pass(1900ms);
  // The renewal and the read after it reach the server, but no answer comes back.
  w.server.faults = {fake::broken(Errc::disconnected), fake::broken(Errc::disconnected)};
  w.pass(200ms);
  w.server.put({"me", 15s, "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:01.000000Z", 0});
  w.pass(2s);
  REQUIRE(w.ended);
  CHECK(w.server.record().holder.empty());
}

TEST_CASE("a foreign edit in the middle of the release does not prevent it", "[k8s][lease]") {
  World w;
  w.work_takes = 1s;
  w.start();
  w.server.faults = {fake::answer(200, to_text(*w.server.lease))};  // read before the edit
  w.server.put(w.server.record());
  w.server.log.clear();
  w.pass(1s);
  REQUIRE(w.ended);
  CHECK(w.server.log == std::vector<std::string>{"GET fault", "PUT 409", "GET 200", "PUT 200"});
  CHECK(w.server.record().holder.empty());
}
