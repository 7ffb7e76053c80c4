// A server of one Lease, and a candidate for it, for tests.
#pragma once

#include "base/task_group.hpp"
#include "catch.hpp"
#include "fake/time.hpp"
#include "fake/transport.hpp"
#include "k8s/lease.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <fmt/format.h>

namespace nvdra::k8s::lease_test {

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

inline LeaseRecord held(std::string holder, std::chrono::seconds duration = 15s) {
  return {std::move(holder), duration, "2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z",
          3};
}

}  // namespace nvdra::k8s::lease_test
