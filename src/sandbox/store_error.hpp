// What the sandbox's API server says when it says no. A Registry error is a Result failure whose
// code is one of Reason and whose `doing` is the message of the metav1.Status.
#pragma once

#include "base/json.hpp"

#include <string>
#include <string_view>

namespace nvdra::sandbox {

enum class Reason {
  bad_request = 1,     // 400
  unauthorized,        // 401
  forbidden,           // 403
  not_found,           // 404
  method_not_allowed,  // 405
  not_acceptable,      // 406
  already_exists,      // 409
  conflict,            // 409
  gone,                // 410, of a resource that is no longer there
  expired,             // 410, of a resourceVersion or continue token
  too_large,           // 413
  unsupported_media,   // 415
  invalid,             // 422
  too_many_requests,   // 429
  internal,            // 500
  unavailable,         // 503
  timeout,             // 504
};

boost::system::error_code make_error_code(Reason reason);

// A failure with the server's message.
Failure deny(Reason reason, std::string_view message);
// What `error` means to a client; internal for errors that deny() did not make.
Reason reason_of(const Error& error);

int http_status(Reason reason);
// "NotFound": metav1.Status.reason.
std::string_view reason_text(Reason reason);

// The metav1.Status of a refusal; its details (name, group, kind, causes) are what the message
// says.
Json status_of(const Error& error);

}  // namespace nvdra::sandbox

template <>
struct boost::system::is_error_code_enum<nvdra::sandbox::Reason> : std::true_type {};
