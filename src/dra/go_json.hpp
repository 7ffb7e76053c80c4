// JSON text exactly as Go's encoding/json writes it, and the pieces of a JSON text as they stand.
// The checkpoint's checksums are over bytes, so spelling matters (node-side.md 7.2).
#pragma once

#include "base/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace nvdra::dra {

// A string with quotes: < > & U+2028 U+2029 and control characters escaped, invalid UTF-8 replaced
// by \ufffd, everything else as it is.
void append_quoted(std::string& out, std::string_view text);

// Any value, compact, keys in their order.
void append_compact(std::string& out, const Json& value);

// One member of an object: pieces of the text it was found in.
struct RawMember {
  std::string_view key;    // with its quotes
  std::string_view value;  // without white space around it
};

// The members of the object that `text` is, in order. Only what is needed to find their ends is
// checked. The error says at which byte the text is no object.
Result<std::vector<RawMember>> members_of(std::string_view text);

// The value of the member `key`, or nothing ("" is no JSON value).
std::string_view value_of(const std::vector<RawMember>& members, std::string_view key);

// The text of a key that stands in quotes.
std::string key_text(std::string_view quoted);

}  // namespace nvdra::dra
