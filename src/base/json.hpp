// JSON values and checked reading. The one include of the JSON library.
// Objects of the API server stay JSON values: we read fields by path, and write patches.
#pragma once

#include "base/result.hpp"

#include <boost/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;

// Parses one JSON text (RFC 8259, nesting up to 64). The error names the line and column.
Result<Json> parse_json(std::string_view text);
// Compact text. Objects keep the order of their keys.
std::string to_text(const Json& value);

// Lenient look-ups: nullptr when any step is missing or of another type. A path is keys separated
// by '/': "metadata/labels". A key that holds '/' itself (labels) is looked up by get().
const Json* find(const Json& value, std::string_view path);
const Json* get(const Json& value, std::string_view key);
// The string there, or "" (a view into `value`).
std::string_view text_or_empty(const Json& value, std::string_view path);
std::int64_t int_or(const Json& value, std::string_view path, std::int64_t otherwise);
bool bool_or(const Json& value, std::string_view path, bool otherwise);
// The array there, or an empty one.
const JsonArray& array_or_empty(const Json& value, std::string_view path);
// The object there, or an empty one.
const JsonObject& object_or_empty(const Json& value, std::string_view path);

// Checked look-ups: the error names the path and what was found instead.
Result<std::string> text_at(const Json& value, std::string_view path);
Result<std::int64_t> int_at(const Json& value, std::string_view path);

// Strict decoding in the manner of Kubernetes: finds the duplicate keys of a JSON text, with
// their paths ("a.b[2].c"), which a parsed value no longer shows. Each path is reported once; of a
// text that is not JSON, those up to the fault.
std::vector<std::string> duplicate_keys(std::string_view text);

// A key as a part of a JSON pointer (RFC 6901): with '~' and '/' escaped.
std::string pointer_part(std::string_view key);

// RFC 7386 (application/merge-patch+json).
void merge_patch(Json& target, const Json& patch);

}  // namespace nvdra
