#include "k8s/lease.hpp"

#include "base/task_group.hpp"
#include "catch.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

// A server of one Lease, with faults.
class LeaseServer final : public Transport {
public:
  explicit LeaseServer(Time& time) : time_(time) {}

  std::optional<Json> lease;
  int version = 1;
  std::deque<fake::Reply> faults;  // for the next requests, in place of an answer
  bool down = false;
  bool hangs = false;
  std::vector<std::string> log;  // "GET 404", "PUT 200 me 0"
  int writes = 0;
  bool all_urgent = true;

  void put(LeaseRecord record) {
    Json next = lease.value_or(Json{{"metadata", {{"name", "l"}, {"namespace", "n"}}}});
    set_record(next, record);
    store(std::move(next));
  }
  LeaseRecord record() const { return record_of(*lease); }

  Async<Result<HttpAnswer>> send(HttpRequest request) override {
    all_urgent = all_urgent && request.urgent;
    if (hangs) co_await time_.sleep(1h);
    if (down) co_return fail(Errc::not_sent, "connect");
    if (!faults.empty()) {
      fake::Reply fault = std::move(faults.front());
      faults.pop_front();
      log.push_back(fmt::format("{} fault", request.method));
      if (fault.broken) co_return fail(*fault.broken, "script");
      co_return HttpAnswer{fault.status, fault.body};
    }
    HttpAnswer answer = act(request);
    log.push_back(fmt::format("{} {}", request.method, answer.status));
    co_return answer;
  }
  Async<Result<OpenAnswer>> open(HttpRequest) override { co_return fail(Errc::not_sent); }

private:
  static HttpAnswer no(int status, std::string reason) {
    return {status, fake::refusal(status, std::move(reason)).body};
  }
  HttpAnswer act(const HttpRequest& request) {
    if (request.method == "GET")
      return lease ? HttpAnswer{200, to_text(*lease)} : no(404, "NotFound");
    ++writes;
    Json body = boost::json::parse(request.body);
    if (request.method == "POST") {
      if (lease) return no(409, "AlreadyExists");
    } else {
      if (!lease) return no(404, "NotFound");
      if (text_or_empty(body, "metadata/resourceVersion") !=
          text_or_empty(*lease, "metadata/resourceVersion"))
        return no(409, "Conflict");
    }
    store(std::move(body));
    return {request.method == "POST" ? 201 : 200, to_text(*lease)};
  }
  void store(Json next) {
    next.get_object()["metadata"].get_object()["resourceVersion"] = std::to_string(++version);
    lease = std::move(next);
  }

  Time& time_;
};

struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  LeaseServer server{time};
  Client client{server, time};
  LeaderElection election{client, time, [] { return 0.5; }, {.key = {"n", "l"}, .identity = "me"}};
  asio::cancellation_signal stop;
  std::optional<Result<void>> ended;
  std::exception_ptr thrown;

  bool working = false;
  bool worked = false;  // to its own end
  std::string holder_at_end_of_work;
  Duration work_takes = 1h;
  Duration work_needs_to_stop = 0s;
  Result<void> work_result;
  bool work_throws = false;

  struct Leave {
    World& w;
    ~Leave() {
      w.working = false;
      w.holder_at_end_of_work = w.server.lease ? w.server.record().holder : "no lease";
    }
  };
  Async<Result<void>> work() {
    working = true;
    Leave leave{*this};
    std::exception_ptr cancelled;
    try {
      co_await time.sleep(work_takes);
    } catch (...) {
      cancelled = std::current_exception();
    }
    if (cancelled) {
      co_await asio::this_coro::reset_cancellation_state();
      if (work_needs_to_stop > 0s) co_await time.sleep(work_needs_to_stop);
      std::rethrow_exception(cancelled);
    }
    if (work_throws) throw std::logic_error("bug");
    worked = true;
    co_return work_result;
  }
  void start() {
    asio::co_spawn(
        loop, election.run([this] { return work(); }),
        asio::bind_cancellation_slot(stop.slot(), [this](std::exception_ptr e, Result<void> r) {
          thrown = e;
          if (!e) ended = std::move(r);
          if (e) ended = Result<void>{};
        }));
    time.settle();
  }
  // In steps, because a sleep that begins in the middle of an advance would come too late.
  void pass(Duration length, Duration step = 100ms) {
    for (Duration gone{}; gone < length; gone += step) time.advance(step);
  }
  ~World() {
    stop.emit(asio::cancellation_type::terminal);
    time.settle();
    pass(11s, 1s);
  }
};

LeaseRecord held(std::string holder, std::chrono::seconds duration = 15s) {
  return {std::move(holder), duration, "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z",
          3};
}

}  // namespace

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
