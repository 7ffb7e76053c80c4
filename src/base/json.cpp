#include "base/json.hpp"

#include <fmt/format.h>

namespace nvdra {
namespace {

const JsonArray no_array;
const JsonObject no_object;

std::string_view kind_name(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return "a boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
    case boost::json::kind::double_: return "a number";
    case boost::json::kind::string: return "a string";
    case boost::json::kind::array: return "a list";
    case boost::json::kind::object: return "an object";
  }
  __builtin_unreachable();
}

Failure wrong_type(std::string_view path, std::string_view wanted, const Json* found) {
  if (!found) return refuse(fmt::format("field {} is missing, expected {}", path, wanted));
  return refuse(fmt::format("field {} is {}, expected {}", path, kind_name(*found), wanted));
}

}  // namespace

std::string pointer_part(std::string_view key) {
  std::string text;
  for (char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

std::string to_text(const Json& value) {
  return boost::json::serialize(value);
}

const Json* get(const Json& value, std::string_view key) {
  const JsonObject* object = value.if_object();
  return object ? object->if_contains(key) : nullptr;
}

const Json* find(const Json& value, std::string_view path) {
  const Json* at = &value;
  while (at && !path.empty()) {
    std::size_t slash = path.find('/');
    at = get(*at, path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return at;
}

std::string_view text_or_empty(const Json& value, std::string_view path) {
  const Json* at = find(value, path);
  const boost::json::string* text = at ? at->if_string() : nullptr;
  return text ? std::string_view(*text) : std::string_view{};
}

std::int64_t int_or(const Json& value, std::string_view path, std::int64_t otherwise) {
  Result<std::int64_t> number = int_at(value, path);
  return number ? *number : otherwise;
}

bool bool_or(const Json& value, std::string_view path, bool otherwise) {
  const Json* at = find(value, path);
  const bool* flag = at ? at->if_bool() : nullptr;
  return flag ? *flag : otherwise;
}

const JsonArray& array_or_empty(const Json& value, std::string_view path) {
  const Json* at = find(value, path);
  const JsonArray* array = at ? at->if_array() : nullptr;
  return array ? *array : no_array;
}

const JsonObject& object_or_empty(const Json& value, std::string_view path) {
  const Json* at = find(value, path);
  const JsonObject* object = at ? at->if_object() : nullptr;
  return object ? *object : no_object;
}

Result<std::string> text_at(const Json& value, std::string_view path) {
  const Json* at = find(value, path);
  if (!at || !at->is_string()) return wrong_type(path, "a string", at);
  return std::string(at->get_string());
}

Result<std::int64_t> int_at(const Json& value, std::string_view path) {
  const Json* at = find(value, path);
  if (at && at->is_int64()) return at->get_int64();
  boost::system::error_code failed;
  if (at && at->is_number()) {
    auto number = at->to_number<std::int64_t>(failed);
    if (!failed) return number;
  }
  return wrong_type(path, "an integer", at);
}

void merge_patch(Json& target, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (!changes) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = JsonObject{};
  for (const auto& [key, change] : *changes) {
    if (change.is_null()) {
      target.get_object().erase(key);
    } else {
      merge_patch(target.get_object()[key], change);
    }
  }
}

}  // namespace nvdra
