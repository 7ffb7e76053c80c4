#include "sandbox/store_error.hpp"

#include <iterator>

namespace nvdra::sandbox {
namespace {

struct Row {
  Reason reason;
  int status;
  std::string_view text;
};

constexpr Row rows[] = {
    {Reason::bad_request, 400, "BadRequest"},
    {Reason::unauthorized, 401, "Unauthorized"},
    {Reason::forbidden, 403, "Forbidden"},
    {Reason::not_found, 404, "NotFound"},
    {Reason::method_not_allowed, 405, "MethodNotAllowed"},
    {Reason::not_acceptable, 406, "NotAcceptable"},
    {Reason::already_exists, 409, "AlreadyExists"},
    {Reason::conflict, 409, "Conflict"},
    {Reason::gone, 410, "Gone"},
    {Reason::expired, 410, "Expired"},
    {Reason::too_large, 413, "RequestEntityTooLarge"},
    {Reason::unsupported_media, 415, "UnsupportedMediaType"},
    {Reason::invalid, 422, "Invalid"},
    {Reason::too_many_requests, 429, "TooManyRequests"},
    {Reason::internal, 500, "InternalError"},
    {Reason::unavailable, 503, "ServiceUnavailable"},
    {Reason::timeout, 504, "Timeout"},
};

const Row& row_of(Reason reason) {
  for (const Row& row : rows)
    if (row.reason == reason) return row;
  return rows[std::size(rows) - 3];
}

class Category final : public boost::system::error_category {
public:
  const char* name() const noexcept override { return "nvdra.sandbox"; }
  std::string message(int value) const override {
    return std::string(row_of(static_cast<Reason>(value)).text);
  }
};

const Category& category() {
  static const Category instance;
  return instance;
}

// "X is invalid: spec.name: Required value" → one cause that clients print.
JsonArray causes_of(std::string_view message) {
  static constexpr std::string_view mark = " is invalid: ";
  std::size_t at = message.find(mark);
  if (at == std::string_view::npos) return {};
  std::string_view text = message.substr(at + mark.size());
  std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return {};
  return {JsonObject{{"reason", "FieldValueInvalid"},
                     {"message", text.substr(colon + 2)},
                     {"field", text.substr(0, colon)}}};
}

}  // namespace

boost::system::error_code make_error_code(Reason reason) {
  return {static_cast<int>(reason), category()};
}

Failure deny(Reason reason, std::string_view message) {
  return fail(make_error_code(reason), message);
}

Reason reason_of(const Error& error) {
  if (error.code.category() != category()) return Reason::internal;
  return static_cast<Reason>(error.code.value());
}

int http_status(Reason reason) {
  return row_of(reason).status;
}

std::string_view reason_text(Reason reason) {
  return row_of(reason).text;
}

Json status_of(const Error& error, JsonObject details) {
  Reason reason = reason_of(error);
  bool ours = error.code.category() == category();
  std::string message = ours ? error.doing : error.text();
  if (reason == Reason::invalid) {
    JsonArray causes = causes_of(message);
    if (!causes.empty()) details["causes"] = std::move(causes);
  }
  JsonObject status{{"kind", "Status"},           {"apiVersion", "v1"},
                    {"metadata", JsonObject{}},   {"status", "Failure"},
                    {"message", message},         {"reason", reason_text(reason)},
                    {"code", http_status(reason)}};
  if (!details.empty()) status["details"] = std::move(details);
  return status;
}

}  // namespace nvdra::sandbox
