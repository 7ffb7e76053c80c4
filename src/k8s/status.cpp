#include "k8s/status.hpp"

#include <fmt/format.h>

#include <charconv>

namespace nvdra::k8s {
namespace {

class Category final : public boost::system::error_category {
public:
  const char* name() const noexcept override { return "nvdra.k8s"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::bad_request: return "bad request";
      case Errc::unauthorized: return "unauthorized";
      case Errc::forbidden: return "forbidden";
      case Errc::not_found: return "not found";
      case Errc::method_not_allowed: return "method not allowed";
      case Errc::already_exists: return "already exists";
      case Errc::conflict: return "conflict";
      case Errc::gone: return "resource version expired";
      case Errc::invalid: return "invalid";
      case Errc::too_many_requests: return "too many requests";
      case Errc::server_error: return "server error";
      case Errc::unavailable: return "service unavailable";
      case Errc::timed_out: return "the server reports a time-out";
      case Errc::unexpected: return "unexpected answer";
      case Errc::malformed_answer: return "malformed answer";
      case Errc::disconnected: return "connection lost";
      case Errc::not_sent: return "request not sent";
      case Errc::bad_config: return "unusable configuration";
    }
    return "unknown error";
  }
};

// The server applies a JSON patch before it looks at the object; when that fails (a `test`, or a
// path that is not there) its 422 has neither the object's name nor causes. A validation error has
// both.
bool is_failed_patch(const Json& status, std::string_view message) {
  if (message.find("test failed") != std::string_view::npos) return true;
  for (const Json& cause : array_or_empty(status, "details/causes")) {
    if (text_or_empty(cause, "message").find("test failed") != std::string_view::npos) return true;
  }
  return text_or_empty(status, "kind") == "Status" &&
         text_or_empty(status, "details/name").empty() &&
         text_or_empty(status, "details/kind").empty() &&
         array_or_empty(status, "details/causes").empty();
}

Errc code_of(int http_status, const Json& status, std::string_view message) {
  std::string_view reason = text_or_empty(status, "reason");
  if (reason == "Timeout" || reason == "ServerTimeout") return Errc::timed_out;
  switch (http_status) {
    case 400: return Errc::bad_request;
    case 401: return Errc::unauthorized;
    case 403: return Errc::forbidden;
    case 404: return Errc::not_found;
    case 405: return Errc::method_not_allowed;
    case 409: return reason == "AlreadyExists" ? Errc::already_exists : Errc::conflict;
    case 410: return Errc::gone;
    case 422: return is_failed_patch(status, message) ? Errc::conflict : Errc::invalid;
    case 429: return Errc::too_many_requests;
    case 503: return Errc::unavailable;
    case 504: return Errc::timed_out;
    default: return http_status >= 500 ? Errc::server_error : Errc::unexpected;
  }
}

}  // namespace

boost::system::error_code make_error_code(Errc code) {
  static const Category category;
  return {static_cast<int>(code), category};
}

std::string beginning_of(std::string_view body) {
  constexpr std::size_t longest = 200;
  std::string shown;
  for (char c : body.substr(0, longest))
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  if (body.size() > longest) shown += "...";
  return shown;
}

Failure failure_of(int http_status, std::string_view body) {
  Result<Json> parsed = parse_json(body);
  const Json status = parsed && parsed->is_object() ? *std::move(parsed) : Json();
  std::string message(text_or_empty(status, "message"));
  Errc code = code_of(http_status, status, message);
  if (!status.is_object()) {
    message = body.empty() ? fmt::format("HTTP status {}", http_status)
                           : fmt::format("HTTP status {}: {}", http_status, beginning_of(body));
  } else if (message.empty() || code == Errc::unexpected) {
    message = fmt::format("HTTP status {}: {}", http_status,
                          message.empty() ? text_or_empty(status, "reason") : message);
  }
  return fail(code, message);
}

bool is_retryable(const Error& error) {
  namespace errc = boost::system::errc;
  if (error.code == make_error_code(errc::timed_out)) return true;
  if (error.code.category() != make_error_code(Errc::conflict).category()) return false;
  switch (static_cast<Errc>(error.code.value())) {
    case Errc::conflict:
    case Errc::too_many_requests:
    case Errc::server_error:
    case Errc::unavailable:
    case Errc::timed_out:
    case Errc::disconnected:
    case Errc::not_sent: return true;
    case Errc::bad_request:
    case Errc::unauthorized:
    case Errc::forbidden:
    case Errc::not_found:
    case Errc::method_not_allowed:
    case Errc::already_exists:
    case Errc::gone:
    case Errc::invalid:
    case Errc::unexpected:
    case Errc::malformed_answer:
    case Errc::bad_config: return false;
  }
  return false;
}

std::optional<Duration> parse_retry_after(std::string_view header) {
  while (!header.empty() && header.front() == ' ') header.remove_prefix(1);
  while (!header.empty() && header.back() == ' ') header.remove_suffix(1);
  std::uint32_t seconds = 0;
  auto [end, failed] = std::from_chars(header.data(), header.data() + header.size(), seconds);
  if (failed != std::errc() || end != header.data() + header.size() || header.empty()) return {};
  return std::chrono::seconds(seconds);
}

}  // namespace nvdra::k8s
