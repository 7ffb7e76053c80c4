// A small part of the Common Expression Language: what device classes, claims' selectors and our
// CRDs' rules need. Operators || && ! == != < <= > >= in + - ?:, member and index access, literals,
// lists, has(), size(), and the string functions startsWith, endsWith, contains, matches.
#pragma once

#include "base/json.hpp"

#include <map>

namespace nvdra::sandbox {

using CelVariables = std::map<std::string, Json, std::less<>>;

// The value of `expression`. The error says what is wrong with the expression, or which member was
// missing (for CEL both `false && error` and `error && false` are false, not errors).
Result<Json> evaluate_cel(std::string_view expression, const CelVariables& variables);
// The same, for conditions: anything but a boolean is an error.
Result<bool> evaluate_condition(std::string_view expression, const CelVariables& variables);

}  // namespace nvdra::sandbox
