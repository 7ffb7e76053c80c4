#include "sandbox/store_error.hpp"

#include <iterator>
#include <utility>

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

constexpr std::pair<std::string_view, std::string_view> cause_reasons[] = {
    {"Required value", "FieldValueRequired"}, {"Unsupported value", "FieldValueNotSupported"},
    {"Forbidden", "FieldValueForbidden"},     {"Duplicate value", "FieldValueDuplicate"},
    {"Too long", "FieldValueTooLong"},        {"Too many", "FieldValueTooMany"},
    {"Invalid value", "FieldValueInvalid"},
};

// The reason of one "path: message", "" if it is none.
std::string_view cause_reason(std::string_view text) {
  std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos || text.substr(0, colon).find(' ') != std::string::npos)
    return {};
  for (const auto& [words, reason] : cause_reasons)
    if (text.substr(colon + 2).starts_with(words)) return reason;
  return {};
}

// "X is invalid: [spec.a: Required value, spec.b: …]" → the causes that clients print.
JsonArray causes_of(std::string_view message) {
  static constexpr std::string_view mark = " is invalid: ";
  std::size_t at = message.find(mark);
  if (at == std::string_view::npos) return {};
  std::string_view text = message.substr(at + mark.size());
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  JsonArray causes;
  while (!text.empty()) {
    std::size_t end = text.find(", ");
    while (end != std::string_view::npos && cause_reason(text.substr(end + 2)).empty())
      end = text.find(", ", end + 2);
    std::string_view cause = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 2);
    std::size_t colon = cause.find(": ");
    if (colon == std::string_view::npos) break;
    causes.push_back(JsonObject{{"reason", cause_reason(cause)},
                                {"message", cause.substr(colon + 2)},
                                {"field", cause.substr(0, colon)}});
  }
  return causes;
}

// "pods \"x\" not found", "Operation cannot be fulfilled on KIND \"x\": …": kind, group and name.
JsonObject subject_of(std::string_view message) {
  static constexpr std::string_view operation = "Operation cannot be fulfilled on ";
  if (message.starts_with(operation)) message.remove_prefix(operation.size());
  std::size_t open = message.find(" \"");
  std::size_t close = open == std::string_view::npos ? open : message.find('"', open + 2);
  if (close == std::string_view::npos) return {};
  std::string_view what = message.substr(0, open);
  std::string_view rest = message.substr(close + 1);
  bool about_object = rest.starts_with(" not found") || rest.starts_with(" already exists") ||
                      rest.starts_with(" is invalid: ") || rest.starts_with(": ");
  if (!about_object || what.find(' ') != std::string_view::npos) return {};
  JsonObject details;
  std::string_view name = message.substr(open + 2, close - open - 2);
  if (!name.empty()) details["name"] = name;
  std::size_t dot = what.find('.');
  details["kind"] = what.substr(0, dot);
  if (dot != std::string_view::npos) details["group"] = what.substr(dot + 1);
  return details;
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

Json status_of(const Error& error) {
  Reason reason = reason_of(error);
  std::string message = error.code.category() == category() ? error.doing : error.text();
  JsonObject status{{"kind", "Status"},           {"apiVersion", "v1"},
                    {"metadata", JsonObject{}},   {"status", "Failure"},
                    {"message", message},         {"reason", reason_text(reason)},
                    {"code", http_status(reason)}};
  JsonObject details = subject_of(message);
  JsonArray causes = causes_of(message);
  if (!causes.empty()) details["causes"] = std::move(causes);
  if (!details.empty()) status["details"] = std::move(details);
  return status;
}

}  // namespace nvdra::sandbox
