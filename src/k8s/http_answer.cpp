#include "k8s/http_answer.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <limits>
#include <utility>

namespace nvdra::k8s {

namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;
using View = boost::beast::string_view;

class HttpAnswerParser::Parser final : public http::basic_parser<false> {
public:
  explicit Parser(std::optional<std::size_t> limit, std::string& body) : body_(body) {
    eager(true);
    header_limit(64 * 1024);
    if (limit) {
      body_limit(*limit);
    } else {
      body_limit(boost::none);
    }
  }

  int status() const { return status_; }
  std::optional<Duration> retry_after() const { return retry_after_; }

private:
  void on_request_impl(http::verb, View, View, int, ErrorCode&) override {}
  void on_response_impl(int code, View, int, ErrorCode&) override { status_ = code; }
  void on_field_impl(http::field name, View, View value, ErrorCode&) override {
    if (name == http::field::retry_after)
      retry_after_ = parse_retry_after(std::string_view(value.data(), value.size()));
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode&) override {
    constexpr std::uint64_t most = 16u << 20;  // reserved on the server's word alone
    if (length && *length <= most) body_.reserve(static_cast<std::size_t>(*length));
  }
  std::size_t on_body_impl(View bytes, ErrorCode&) override {
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, View, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View bytes, ErrorCode&) override {
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  std::string& body_;
  int status_ = 0;
  std::optional<Duration> retry_after_;
};

HttpAnswerParser::HttpAnswerParser(std::optional<std::size_t> body_limit)
    : body_limit_(body_limit), parser_(std::make_unique<Parser>(body_limit, body_)) {}

HttpAnswerParser::~HttpAnswerParser() = default;

Result<std::size_t> HttpAnswerParser::put(std::string_view bytes) {
  std::size_t used = 0;
  begun_ = begun_ || !bytes.empty();
  while (used < bytes.size() && !done()) {
    ErrorCode failed;
    std::string_view left = bytes.substr(used);
    used += parser_->put(boost::asio::const_buffer(left.data(), left.size()), failed);
    if (failed == http::error::need_more) break;
    if (failed)
      return fail(Errc::malformed_answer, "the answer is not HTTP/1.1: " + failed.message());
    if (parser_->is_done() && status() / 100 == 1)
      parser_ = std::make_unique<Parser>(body_limit_, body_);
  }
  return used;
}

Result<void> HttpAnswerParser::put_end() {
  if (done()) return ok();
  ErrorCode failed = http::error::partial_message;
  if (parser_->got_some()) {
    failed = {};
    parser_->put_eof(failed);
  }
  if (failed) return fail(Errc::disconnected, "closed before the whole answer had come");
  return ok();
}

bool HttpAnswerParser::begun() const {
  return begun_;
}
bool HttpAnswerParser::headers_done() const {
  return parser_->is_header_done() && status() / 100 != 1;
}
bool HttpAnswerParser::done() const {
  return parser_->is_done();
}
int HttpAnswerParser::status() const {
  return parser_->status();
}
std::optional<Duration> HttpAnswerParser::retry_after() const {
  return parser_->retry_after();
}
bool HttpAnswerParser::keep_alive() const {
  return parser_->keep_alive();
}
std::string HttpAnswerParser::take_body() {
  return std::exchange(body_, {});
}

}  // namespace nvdra::k8s
