#include "base/json.hpp"

#include "target.hpp"

#include <algorithm>

using namespace nvdra;

namespace {

// Boost.JSON 1.81 reads a fraction or a very long number to within one unit in the last place,
// and one beyond the range as infinite, which it cannot write.
bool holds_fraction(const Json& value) {
  if (value.is_double()) return true;
  if (value.is_array()) return std::ranges::any_of(value.get_array(), holds_fraction);
  return value.is_object() && std::ranges::any_of(value.get_object(), [](const auto& member) {
           return holds_fraction(member.value());
         });
}

}  // namespace

void fuzz(std::string_view text) {
  (void)duplicate_keys(text);
  Result<Json> value = parse_json(text);
  if (!value) return;
  if (holds_fraction(*value)) return;
  const std::string written = to_text(*value);
  Result<Json> again = parse_json(written);
  require(again.has_value(), "what to_text() writes can be read");
  require(to_text(*again) == written, "reading and writing again changes nothing");
  Json target = *value;
  merge_patch(target, *again);
}
