// A Transport that plays a script: expected call → reply, in the order in which they were written.
//
//   fake::ScriptedTransport api(time);
//   api.expect("GET /api/v1/nodes/a", fake::answer(200, R"({"metadata":{"name":"a"}})"));
//   auto events = api.expect_stream("GET /api/v1/nodes?watch=true…");
//   events->push(R"({"type":"ADDED","object":{…}})" "\n");
//   …
//   CHECK(api.surprises.empty());  // calls that the script did not expect
//   CHECK(api.finished());
//
// An expectation that ends in '*' matches every call that begins so. Calls that no line of the
// script expects next go to `otherwise`, if set.
#pragma once

#include "base/event.hpp"
#include "base/within.hpp"
#include "k8s/status.hpp"
#include "k8s/transport.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nvdra::fake {

struct Reply {
  int status = 200;
  std::string body = {};
  std::optional<Duration> retry_after = {};
  std::optional<boost::system::error_code> broken = {};  // no answer, but this error
  Duration after = {};                                   // comes so much later
};

inline Reply answer(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}
inline Reply broken(boost::system::error_code code) {
  return {.broken = code};
}
// A metav1.Status.
inline Reply refusal(int status, std::string reason, std::string message = "no") {
  return answer(status, R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" +
                            message + R"(","reason":")" + reason + R"(","code":)" +
                            std::to_string(status) + "}");
}

// What a stream will deliver; the test keeps it and may add to it while it is read.
class Body {
public:
  explicit Body(asio::any_io_executor executor) : changed_(std::move(executor)) {}
  void push(std::string bytes) {
    pieces_.push_back(std::move(bytes));
    changed_.notify();
  }
  void end() { push(""); }  // in good order
  void cut() {
    cut_ = true;
    changed_.notify();
  }
  bool open() const { return open_; }  // somebody reads it

private:
  friend class ScriptedStream;
  std::deque<std::string> pieces_;
  bool cut_ = false;
  bool open_ = false;
  Event changed_;
};

class ScriptedStream final : public k8s::BodyStream {
public:
  ScriptedStream(std::shared_ptr<Body> body, Time& time) : body_(std::move(body)), time_(time) {
    body_->open_ = true;
  }
  ~ScriptedStream() override { body_->open_ = false; }

  Async<Result<std::string>> read_some(Duration idle) override {
    return within(time_, idle, next(body_));
  }

private:
  static Async<Result<std::string>> next(std::shared_ptr<Body> body) {
    while (body->pieces_.empty()) {
      if (body->cut_) co_return fail(k8s::Errc::disconnected, "script");
      auto seen = body->changed_.count();
      co_await body->changed_.wait(seen);
    }
    std::string piece = std::move(body->pieces_.front());
    if (!piece.empty()) body->pieces_.pop_front();  // the end stays
    co_return piece;
  }

  std::shared_ptr<Body> body_;
  Time& time_;
};

class ScriptedTransport final : public k8s::Transport {
public:
  ScriptedTransport(asio::any_io_executor executor, Time& time)
      : executor_(std::move(executor)), time_(time) {}

  void expect(std::string call, Reply reply) {
    script_.push_back({std::move(call), std::move(reply), nullptr});
  }
  std::shared_ptr<Body> expect_stream(std::string call) {
    auto body = std::make_shared<Body>(executor_);
    script_.push_back({std::move(call), {}, body});
    return body;
  }
  bool finished() const { return script_.empty(); }

  std::vector<k8s::HttpRequest> requests;                   // all, as they came
  std::vector<std::string> surprises;                       // "GET /x" that nobody expected
  std::function<Reply(const k8s::HttpRequest&)> otherwise;  // answers what the script does not

  Async<Result<k8s::HttpAnswer>> send(k8s::HttpRequest request) override {
    Line line = take(request);
    co_await delay(line, request.limit);
    if (line.reply.after >= request.limit)
      co_return fail(make_error_code(boost::system::errc::timed_out));
    if (line.reply.broken) co_return fail(*line.reply.broken, "script");
    co_return k8s::HttpAnswer{line.reply.status, std::move(line.reply.body),
                              line.reply.retry_after};
  }

  Async<Result<k8s::OpenAnswer>> open(k8s::HttpRequest request) override {
    Line line = take(request);
    co_await delay(line, request.limit);
    if (line.reply.after >= request.limit)
      co_return fail(make_error_code(boost::system::errc::timed_out));
    if (line.reply.broken) co_return fail(*line.reply.broken, "script");
    k8s::OpenAnswer opened{line.reply.status, std::move(line.reply.body), line.reply.retry_after,
                           nullptr};
    if (line.reply.status == 200 && !line.body) {  // a reply's body, then the end
      line.body = std::make_shared<Body>(executor_);
      if (!opened.body.empty()) line.body->push(std::exchange(opened.body, {}));
      line.body->end();
    }
    if (line.body) opened.stream = std::make_unique<ScriptedStream>(line.body, time_);
    co_return opened;
  }

private:
  struct Line {
    std::string call;
    Reply reply;
    std::shared_ptr<Body> body;

    bool matches(const std::string& asked) const {
      if (call.ends_with('*')) return asked.starts_with(call.substr(0, call.size() - 1));
      return asked == call;
    }
  };

  Line take(const k8s::HttpRequest& request) {
    requests.push_back(request);
    std::string asked = request.method + " " + request.target;
    if (!script_.empty() && script_.front().matches(asked)) {
      Line line = std::move(script_.front());
      script_.pop_front();
      return line;
    }
    if (otherwise) return {asked, otherwise(request), nullptr};
    surprises.push_back(script_.empty() ? asked
                                        : asked + " (expected: " + script_.front().call + ")");
    return {asked, broken(make_error_code(k8s::Errc::not_sent)), nullptr};
  }

  Async<void> delay(const Line& line, Duration limit) {
    if (line.reply.after > Duration{}) co_await time_.sleep(std::min(line.reply.after, limit));
  }

  asio::any_io_executor executor_;
  Time& time_;
  std::deque<Line> script_;
};

}  // namespace nvdra::fake
