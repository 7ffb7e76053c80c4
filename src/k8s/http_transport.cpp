#include "k8s/http_transport.hpp"

#include "base/try.hpp"
#include "base/within.hpp"
#include "k8s/http_transport_connection.hpp"
#include "k8s/permits.hpp"
#include "k8s/tls.hpp"
#include "k8s/token_source.hpp"

#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>
#include <malloc.h>

#include <charconv>
#include <deque>

namespace nvdra::k8s {
namespace {

using ConnectionPtr = std::unique_ptr<Connection>;

// The first line and the header fields, as we send them.
std::string head_of(const HttpRequest& request, const Config& config, const std::string& host,
                    const std::string& token) {
  std::string head = fmt::format(
      "{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: nvdra\r\nAccept: application/json\r\n",
      request.method, config.path_prefix, request.target, host);
  if (!token.empty()) head += fmt::format("Authorization: Bearer {}\r\n", token);
  if (!request.content_type.empty())
    head += fmt::format("Content-Type: {}\r\n", request.content_type);
  if (!request.body.empty() || request.method != "GET")
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  return head + "\r\n";
}

bool is_port(std::string_view text) {
  std::uint16_t number = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() && number > 0;
}

// Idle connections, the most recently used one first, closed when they have been idle for long.
class Pool : public std::enable_shared_from_this<Pool> {
public:
  Pool(asio::any_io_executor executor, Duration idle) : clock_(executor), idle_(idle) {}

  // nullptr when there is none that is still good.
  ConnectionPtr take() {
    while (!connections_.empty()) {
      ConnectionPtr latest = std::move(connections_.back().connection);
      connections_.pop_back();
      if (latest->quiet()) return latest;
    }
    return nullptr;
  }
  void give(ConnectionPtr connection) {
    connections_.push_back({std::move(connection), Clock::now() + idle_});
    if (connections_.size() == 1) wait();
  }
  void clear() {
    connections_.clear();
    clock_.cancel();
  }

private:
  struct Idle {
    ConnectionPtr connection;
    Instant until;
  };

  void wait() {
    clock_.expires_at(connections_.front().until);
    clock_.async_wait([self = weak_from_this()](boost::system::error_code failed) {
      std::shared_ptr<Pool> pool = self.lock();
      if (pool && !failed) pool->close_old();
    });
  }
  void close_old() {
    while (!connections_.empty() && connections_.front().until <= Clock::now())
      connections_.pop_front();
    // The memory of a burst goes back to the system, not only to malloc.
    ::malloc_trim(0);
    if (!connections_.empty()) wait();
  }

  std::deque<Idle> connections_;
  asio::steady_timer clock_;
  Duration idle_;
};

class HttpBodyStream final : public BodyStream {
public:
  HttpBodyStream(Time& time, ConnectionPtr connection, std::unique_ptr<HttpAnswerParser> answer)
      : time_(time), connection_(std::move(connection)), answer_(std::move(answer)) {}

  Async<Result<std::string>> read_some(Duration idle) override {
    std::string bytes = answer_->take_body();
    while (bytes.empty() && !answer_->done()) {
      if (!connection_) co_return fail(Errc::disconnected, "the stream has failed before");
      // Until its bytes are here the connection is this call's: gone if the call is cancelled.
      ConnectionPtr connection = std::move(connection_);
      Result<void> more = co_await within(time_, idle, connection->read_into(*answer_));
      if (!more) co_return std::move(more).failure();
      connection_ = std::move(connection);
      bytes = answer_->take_body();
    }
    co_return bytes;
  }

private:
  Time& time_;
  ConnectionPtr connection_;
  std::unique_ptr<HttpAnswerParser> answer_;
};

class HttpTransport final : public Transport {
public:
  HttpTransport(asio::any_io_executor executor, Time& time, Config config, std::optional<Tls> tls,
                HttpLimits limits)
      : time_(time),
        config_(std::move(config)),
        tls_(std::move(tls)),
        limits_(limits),
        server_{config_.host, config_.port, tls_ ? &*tls_ : nullptr, limits.connect},
        token_(config_.token, config_.token_file),
        permits_(limits.in_flight),
        pool_(std::make_shared<Pool>(executor, limits.idle)),
        urgent_pool_(std::make_shared<Pool>(executor, limits.idle)) {}

  Async<Result<HttpAnswer>> send(HttpRequest request) override {
    Duration limit = request.limit;
    Result<HttpAnswer> answer = co_await within(time_, limit, send_in_turn(std::move(request)));
    if (!answer) co_return in_words(std::move(answer).failure(), limit);
    co_return answer;
  }

  Async<Result<OpenAnswer>> open(HttpRequest request) override {
    Duration limit = request.limit;
    Result<OpenAnswer> answer = co_await within(time_, limit, open_stream(std::move(request)));
    if (!answer) co_return in_words(std::move(answer).failure(), limit);
    co_return answer;
  }

private:
  // An answer of which the headers, or all, have come.
  struct Exchange {
    ConnectionPtr connection;
    std::unique_ptr<HttpAnswerParser> answer;
  };
  enum class Until { headers, end };

  Failure in_words(Failure failure, Duration limit) const {
    if (failure.error.code != boost::system::errc::timed_out) return failure;
    auto seconds = std::chrono::duration<double>(limit).count();
    return fail(failure.error.code,
                fmt::format("no answer from {} within {:.4g} s", server_.text(), seconds));
  }

  Async<Result<HttpAnswer>> send_in_turn(HttpRequest request) {
    Permits::Permit permit;
    if (!request.urgent) permit = co_await permits_.take();
    Result<Exchange> done = co_await believed(request, Until::end);
    if (!done) co_return std::move(done).failure();
    HttpAnswer answer{done->answer->status(), done->answer->take_body(),
                      done->answer->retry_after()};
    if (done->answer->keep_alive()) pool_of(request).give(std::move(done->connection));
    co_return answer;
  }

  Async<Result<OpenAnswer>> open_stream(HttpRequest request) {
    Result<Exchange> begun = co_await believed(request, Until::headers);
    if (!begun) co_return std::move(begun).failure();
    OpenAnswer answer{begun->answer->status(), {}, begun->answer->retry_after(), nullptr};
    if (answer.status == 200) {
      answer.stream = std::make_unique<HttpBodyStream>(time_, std::move(begun->connection),
                                                       std::move(begun->answer));
      co_return answer;
    }
    Result<void> rest = co_await read_until(*begun, Until::end);
    if (!rest) co_return std::move(rest).failure();
    answer.body = begun->answer->take_body();
    co_return answer;
  }

  // Once more with a fresh token if the server does not believe the one that we have.
  Async<Result<Exchange>> believed(const HttpRequest& request, Until until) {
    Result<Exchange> done = co_await exchange(request, until);
    if (!done || done->answer->status() != 401 || !token_.renewable()) co_return done;
    token_.distrust();
    done = co_await exchange(request, until);
    co_return done;
  }

  Async<Result<Exchange>> exchange(const HttpRequest& request, Until until) {
    CO_TRY(std::string token, token_.current(time_.now()));
    std::string bytes = head_of(request, config_, server_.text(), token) + request.body;
    ConnectionPtr kept = pool_of(request).take();
    if (kept) {
      Exchange reused{std::move(kept), new_answer(until)};
      Result<void> done = co_await talk(reused, bytes, until);
      if (done) co_return reused;
      if (!may_repeat(request, done.error(), *reused.answer)) co_return std::move(done).failure();
      // The others have most likely died together with this one.
      pool_of(request).clear();
    }
    Result<ConnectionPtr> connected = co_await Connection::open(server_, &time_);
    if (!connected) co_return std::move(connected).failure();
    Exchange fresh{*std::move(connected), new_answer(until)};
    Result<void> done = co_await talk(fresh, std::move(bytes), until);
    if (!done) co_return std::move(done).failure();
    co_return fresh;
  }

  // A kept-alive connection failed. The server cannot have acted on what never left; and a GET
  // may be asked twice.
  static bool may_repeat(const HttpRequest& request, const Error& error,
                         const HttpAnswerParser& answer) {
    if (error.code == Errc::not_sent) return true;
    return error.code == Errc::disconnected && request.method == "GET" && !answer.begun();
  }

  static Async<Result<void>> talk(Exchange& exchange, std::string bytes, Until until) {
    Result<void> written = co_await exchange.connection->write(std::move(bytes));
    if (!written) co_return written;
    Result<void> read = co_await read_until(exchange, until);
    co_return read;
  }

  static Async<Result<void>> read_until(Exchange& exchange, Until until) {
    HttpAnswerParser& answer = *exchange.answer;
    while (!(until == Until::headers ? answer.headers_done() : answer.done())) {
      Result<void> more = co_await exchange.connection->read_into(answer);
      if (!more) co_return more;
    }
    co_return ok();
  }

  std::unique_ptr<HttpAnswerParser> new_answer(Until until) const {
    return std::make_unique<HttpAnswerParser>(
        until == Until::headers ? std::nullopt : std::optional(limits_.body));
  }
  Pool& pool_of(const HttpRequest& request) { return request.urgent ? *urgent_pool_ : *pool_; }

  Time& time_;
  Config config_;
  std::optional<Tls> tls_;
  HttpLimits limits_;
  Server server_;
  TokenSource token_;
  Permits permits_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Pool> urgent_pool_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_http_transport(asio::any_io_executor executor, Time& time,
                                                       Config config, HttpLimits limits) {
  if (!is_port(config.port))
    return fail(Errc::bad_config, fmt::format("\"{}\" is no port of the API server", config.port));
  std::optional<Tls> tls;
  if (config.tls) {
    TRY(tls, Tls::make(config));
  }
  return std::unique_ptr<Transport>(std::make_unique<HttpTransport>(
      std::move(executor), time, std::move(config), std::move(tls), limits));
}

}  // namespace nvdra::k8s
