#include "sandbox/api_http.hpp"

#include "base/try.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <fmt/format.h>

#include <array>
#include <functional>

namespace nvdra::sandbox {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::string_body>;

constexpr std::size_t body_limit = 32u << 20;
constexpr std::uint32_t header_limit = 64u << 10;
constexpr auto as_value = asio::as_tuple(asio::use_awaitable);

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void parse_target(std::string_view target, Request& request) {
  std::size_t question = target.find('?');
  std::string_view path = target.substr(0, question);
  for (std::size_t from = 0; from < path.size();) {
    std::size_t slash = std::min(path.find('/', from), path.size());
    if (slash > from)
      request.path.push_back(percent_decoded(path.substr(from, slash - from), false));
    from = slash + 1;
  }
  if (question == std::string_view::npos) return;
  std::string_view query = target.substr(question + 1);
  for (std::size_t from = 0; from < query.size();) {
    std::size_t end = std::min(query.find('&', from), query.size());
    std::string_view pair = query.substr(from, end - from);
    std::size_t equals = std::min(pair.find('='), pair.size());
    request.query.emplace(
        percent_decoded(pair.substr(0, equals), true),
        equals < pair.size() ? percent_decoded(pair.substr(equals + 1), true) : "");
    from = end + 1;
  }
}

Request request_of(Parser& parser) {
  auto& message = parser.get();
  Request request;
  request.method = std::string(message.method_string());
  std::string_view target(message.target().data(), message.target().size());
  parse_target(target, request);
  for (const auto& field : message)
    request.headers[lower({field.name_string().data(), field.name_string().size()})] =
        std::string(field.value());
  request.body = std::move(message.body());
  return request;
}

std::string_view status_text(int status) {
  return {http::obsolete_reason(static_cast<http::status>(status)).data(),
          http::obsolete_reason(static_cast<http::status>(status)).size()};
}

std::string head_of(int status, const std::string& content_type) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-cache, private\r\n",
                     status, status_text(status), content_type);
}

}  // namespace

std::string Request::header(std::string_view name) const {
  auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::string Request::parameter(std::string_view name) const {
  auto found = query.find(name);
  return found == query.end() ? std::string() : found->second;
}

bool Request::flag(std::string_view name) const {
  std::string value = parameter(name);
  return value == "true" || value == "1";
}

std::string Request::path_text() const {
  std::string text;
  for (const std::string& part : path) text += "/" + part;
  return text.empty() ? "/" : text;
}

std::string percent_decoded(std::string_view text, bool plus) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool coded =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    if (coded) {
      result += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      result += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

// What outlives the connection: an asynchronous read may still hold it.
struct Connection::Bell {
  explicit Bell(asio::any_io_executor executor) : timer(executor) {}
  void ring() {
    rung = true;
    timer.cancel();
  }

  asio::steady_timer timer;
  bool rung = false;
  bool gone = false;
  std::array<char, 1024> ignored{};
};

Connection::Connection(asio::ip::tcp::socket socket)
    : socket_(std::move(socket)), bell_(std::make_shared<Bell>(socket_.get_executor())) {
  boost::system::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

Connection::~Connection() = default;

Async<Result<std::optional<Request>>> Connection::read_request() {
  Parser parser;
  parser.eager(true);
  parser.body_limit(body_limit);
  parser.header_limit(header_limit);
  bool begun = false;
  for (;;) {
    boost::system::error_code failed;
    if (!buffered_.empty()) {
      begun = true;
      std::size_t used = parser.put(asio::buffer(buffered_), failed);
      buffered_.erase(0, used);
      if (failed && failed != http::error::need_more) co_return fail(failed, "parse the request");
      if (parser.is_done()) break;
    }
    Result<std::string> more = co_await read_some();
    if (!more && begun) co_return std::move(more).failure();
    if (!more || more->empty()) co_return std::optional<Request>();
    buffered_ += *more;
  }
  keep_ = parser.get().keep_alive();
  co_return std::optional(request_of(parser));
}

Async<Result<std::string>> Connection::read_some() {
  if (!buffered_.empty()) co_return std::exchange(buffered_, {});
  std::string chunk(16384, '\0');
  auto [failed, count] = co_await socket_.async_read_some(asio::buffer(chunk), as_value);
  if (failed == asio::error::eof) co_return std::string();
  if (failed) co_return fail(failed, "read");
  chunk.resize(count);
  co_return chunk;
}

Async<Result<void>> Connection::write_raw(std::string bytes) {
  auto [failed, count] = co_await asio::async_write(socket_, asio::buffer(bytes), as_value);
  (void)count;
  if (failed) co_return fail(failed, "write");
  co_return ok();
}

Async<Result<void>> Connection::write(Answer answer) {
  std::string bytes = head_of(answer.status, answer.content_type);
  for (const auto& [name, value] : answer.headers) bytes += fmt::format("{}: {}\r\n", name, value);
  if (!keep_) bytes += "Connection: close\r\n";
  bytes += fmt::format("Content-Length: {}\r\n\r\n", answer.body.size());
  bytes += answer.body;
  Result<void> written = co_await write_raw(std::move(bytes));
  co_return written;
}

Async<Result<void>> Connection::write_half(Answer answer) {
  std::string bytes = head_of(answer.status, answer.content_type);
  bytes += fmt::format("Content-Length: {}\r\n\r\n", answer.body.size());
  bytes += answer.body.substr(0, answer.body.size() / 2);
  Result<void> written = co_await write_raw(std::move(bytes));
  close();
  co_return written;
}

Async<Result<void>> Connection::begin_stream(int status, std::string content_type) {
  keep_ = false;
  listen_for_close();
  std::string head = head_of(status, content_type);
  head += "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
  Result<void> written = co_await write_raw(std::move(head));
  co_return written;
}

Async<Result<void>> Connection::write_chunk(std::string bytes) {
  std::string chunk = fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  Result<void> written = co_await write_raw(std::move(chunk));
  co_return written;
}

Async<Result<void>> Connection::end_stream() {
  Result<void> written = co_await write_raw("0\r\n\r\n");
  close();
  co_return written;
}

void Connection::listen_for_close() {
  if (listening_) return;
  listening_ = true;
  socket_.async_read_some(asio::buffer(bell_->ignored),
                          [bell = bell_](boost::system::error_code, std::size_t) {
                            bell->gone = true;
                            bell->ring();
                          });
}

Async<void> Connection::wait_for_ring(Instant until) {
  std::shared_ptr<Bell> bell = bell_;
  if (!bell->rung) {
    bell->timer.expires_at(until);
    auto [ended] = co_await bell->timer.async_wait(as_value);
    (void)ended;
  }
  bell->rung = false;
}

std::function<void()> Connection::ringer() {
  return [bell = bell_] { bell->ring(); };
}

bool Connection::client_gone() const {
  return bell_->gone;
}

void Connection::close() {
  boost::system::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

}  // namespace nvdra::sandbox
