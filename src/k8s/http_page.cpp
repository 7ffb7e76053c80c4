#include "k8s/http_page.hpp"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include <fmt/format.h>

namespace nvdra::k8s {

namespace http = boost::beast::http;

std::optional<PageRequest> take_request(std::string& buffer, std::size_t head_limit) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(head_limit));
  boost::system::error_code failed;
  std::size_t used = parser.put(asio::buffer(buffer), failed);
  if (failed == http::error::need_more) return std::nullopt;
  if (failed == http::error::header_limit) return PageRequest{.fault = 431};
  if (failed) return PageRequest{.fault = 400};
  if (!parser.is_header_done()) return std::nullopt;
  buffer.erase(0, used);
  const auto& message = parser.get();
  PageRequest request{.version = static_cast<int>(message.version()),
                      .get = message.method() == http::verb::get,
                      .head = message.method() == http::verb::head,
                      .keep = message.keep_alive(),
                      .target = std::string(message.target())};
  bool has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
  if (!request.get && !request.head) request.fault = 405;
  if (has_body && request.fault == 0) request.fault = 400;
  if (has_body) request.keep = false;  // we do not read it
  return request;
}

std::string render_page(const PageRequest& request, const HttpReply& reply) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}\r\n"
      "Content-Length: {}\r\n"
      "X-Content-Type-Options: nosniff\r\n",
      reply.status,
      std::string_view(http::obsolete_reason(static_cast<http::status>(reply.status))),
      reply.content_type, reply.body.size());
  if (reply.status == 405) text += "Allow: GET, HEAD\r\n";
  if (!request.keep) text += "Connection: close\r\n";
  if (request.keep && request.version == 10) text += "Connection: keep-alive\r\n";
  text += "\r\n";
  if (!request.head) text += reply.body;
  return text;
}

}  // namespace nvdra::k8s
