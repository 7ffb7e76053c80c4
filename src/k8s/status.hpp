// What the API server says when it says no: one enum, made in one function.
#pragma once

#include "base/json.hpp"
#include "base/time.hpp"

#include <optional>

namespace nvdra::k8s {

enum class Errc {
  bad_request = 1,     // 400
  unauthorized,        // 401
  forbidden,           // 403: a human must act
  not_found,           // 404
  method_not_allowed,  // 405
  already_exists,      // 409, reason AlreadyExists
  conflict,  // 409, any other reason; also a failed JSON-Patch `test` (422 with that cause)
  gone,      // 410: the resourceVersion has expired, list again
  invalid,   // 422
  too_many_requests,  // 429
  server_error,       // other 5xx
  unavailable,        // 503
  timed_out,          // 504, or reason Timeout / ServerTimeout
  unexpected,         // any other status
  malformed_answer,   // not JSON, or not the expected kind
  disconnected,       // no connection, or lost before the whole answer
  not_sent,           // no connection could be made: the request did not reach the server
  bad_config,         // kubeconfig or service account unusable
};

boost::system::error_code make_error_code(Errc code);

// The answer's status and its metav1.Status body (if any) → Failure, whose text holds the server's
// message ("pods \"x\" is forbidden: …"). Precondition: status >= 400.
Failure failure_of(int http_status, std::string_view body);

// The first bytes of an answer that nobody understands, fit for one line of text.
std::string beginning_of(std::string_view body);

// Retried by itself: connection, 429, 5xx, time-outs, conflicts. Not: 400, 401, 403, 404, 422.
bool is_retryable(const Error& error);

// Retry-After in seconds (integer or HTTP date is not used by the API server): nullopt if absent or
// bad.
std::optional<Duration> parse_retry_after(std::string_view header);

}  // namespace nvdra::k8s

template <>
struct boost::system::is_error_code_enum<nvdra::k8s::Errc> : std::true_type {};
