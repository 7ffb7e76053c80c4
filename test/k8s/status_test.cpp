#include "k8s/status.hpp"

#include "catch.hpp"

#include <fmt/format.h>

using namespace nvdra;
using k8s::Errc;

namespace {

std::string status_body(std::string_view reason, std::string_view message,
                        std::string_view details = R"({"name":"a","kind":"pods"})") {
  return fmt::format(
      R"({{"kind":"Status","status":"Failure","message":"{}","reason":"{}","details":{}}})",
      message, reason, details);
}

}  // namespace

TEST_CASE("each refusal of the API server becomes one code", "[k8s][status]") {
  struct Row {
    int status;
    const char* reason;
    Errc expected;
    bool retryable;
  };
  const Row row = GENERATE(values<Row>({
      {400, "BadRequest", Errc::bad_request, false},
      {401, "Unauthorized", Errc::unauthorized, false},
      {403, "Forbidden", Errc::forbidden, false},
      {404, "NotFound", Errc::not_found, false},
      {405, "MethodNotAllowed", Errc::method_not_allowed, false},
      {409, "AlreadyExists", Errc::already_exists, false},
      {409, "Conflict", Errc::conflict, true},
      {410, "Expired", Errc::gone, false},
      {410, "Gone", Errc::gone, false},
      {415, "UnsupportedMediaType", Errc::unexpected, false},
      {422, "Invalid", Errc::invalid, false},
      {429, "TooManyRequests", Errc::too_many_requests, true},
      {500, "InternalError", Errc::server_error, true},
      {500, "ServerTimeout", Errc::timed_out, true},
      {503, "ServiceUnavailable", Errc::unavailable, true},
      {504, "Timeout", Errc::timed_out, true},
  }));
  INFO(row.status << " " << row.reason);
  Error error = k8s::failure_of(row.status, status_body(row.reason, "because")).error;
  CHECK(error.code == row.expected);
  CHECK(k8s::is_retryable(error) == row.retryable);
  CHECK(error.doing.find("because") != std::string::npos);
}

TEST_CASE("a JSON patch that could not be applied is a conflict, a rejected object is not",
          "[k8s][status]") {
  SECTION("the API server's answer to a failed test: no name, no causes") {
    std::string body = status_body(
        "Invalid", "the server rejected our request due to an error in our request", "{}");
    CHECK(k8s::failure_of(422, body).error.code == Errc::conflict);
  }
  SECTION("the failed test in words") {
    std::string body =
        status_body("Invalid", "testing value /metadata/resourceVersion failed: test failed");
    CHECK(k8s::failure_of(422, body).error.code == Errc::conflict);
  }
  SECTION("a field that is not allowed") {
    std::string body = status_body(
        "Invalid", "spec: Invalid value",
        R"({"name":"a","kind":"ComputeDomain","causes":[{"message":"immutable","field":"spec"}]})");
    CHECK(k8s::failure_of(422, body).error.code == Errc::invalid);
  }
}

TEST_CASE("the text of a refusal is the server's own sentence", "[k8s][status]") {
  std::string body = status_body("Forbidden", "pods is forbidden: User x cannot list pods");
  CHECK(k8s::failure_of(403, body).error.text() ==
        "pods is forbidden: User x cannot list pods: forbidden");
}

TEST_CASE("an error body that is not JSON is quoted, shortened and made one line",
          "[k8s][status]") {
  CHECK(k8s::failure_of(503, "no healthy\nupstream").error.text() ==
        "HTTP status 503: no healthy upstream: service unavailable");
  CHECK(k8s::failure_of(502, "").error.text() == "HTTP status 502: server error");
  std::string text = k8s::failure_of(500, std::string(100'000, 'x')).error.text();
  CHECK(text.size() < 300);
}

TEST_CASE("lost connections and time-outs are retryable, unusable configuration is not",
          "[k8s][status]") {
  CHECK(k8s::is_retryable({make_error_code(boost::system::errc::timed_out), ""}));
  CHECK(k8s::is_retryable({Errc::disconnected, ""}));
  CHECK(k8s::is_retryable({Errc::not_sent, ""}));
  CHECK_FALSE(k8s::is_retryable({Errc::bad_config, ""}));
  CHECK_FALSE(k8s::is_retryable(refuse("no").error));
}

TEST_CASE("Retry-After is a whole number of seconds or nothing", "[k8s][status]") {
  CHECK(k8s::parse_retry_after("1") == Duration(1s));
  CHECK(k8s::parse_retry_after(" 30 ") == Duration(30s));
  CHECK(k8s::parse_retry_after("0") == Duration(0s));
  CHECK_FALSE(k8s::parse_retry_after(""));
  CHECK_FALSE(k8s::parse_retry_after("-1"));
  CHECK_FALSE(k8s::parse_retry_after("1.5"));
  CHECK_FALSE(k8s::parse_retry_after("99999999999999"));
  CHECK_FALSE(k8s::parse_retry_after("Fri, 31 Dec 1999 23:59:59 GMT"));
}
