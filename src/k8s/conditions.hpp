// Lists of metav1.Condition (status.conditions of an object). Pure.
#pragma once

#include "base/json.hpp"

#include <string>
#include <string_view>

namespace nvdra::k8s {

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;  // CamelCase, not empty
  std::string message = {};
  std::int64_t observed_generation = 0;  // 0 = left out
};

struct ConditionChange {
  JsonArray conditions;  // the list with `wanted` in it, the others as they were
  bool changed;          // false: the list says so already, nothing is to be written
};

// `now` as Kubernetes writes times (rfc3339()). lastTransitionTime moves only when the status
// changes; a new condition is put at the end.
ConditionChange set_condition(const JsonArray& conditions, const Condition& wanted,
                              std::string_view now);
ConditionChange remove_condition(const JsonArray& conditions, std::string_view type);

// nullptr if there is none of this type.
const Json* find_condition(const JsonArray& conditions, std::string_view type);
// True if there is one of this type and its status is "True".
bool is_true(const JsonArray& conditions, std::string_view type);

}  // namespace nvdra::k8s
