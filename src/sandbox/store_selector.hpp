// Label and field selectors, as lists and watches take them.
#pragma once

#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

struct Requirement {
  enum class Operator { in, not_in, exists, does_not_exist, greater, less };
  std::string key;  // of a field selector: a path, "spec.nodeName"
  Operator op = Operator::exists;
  std::vector<std::string> values = {};

  // `value` is nullptr when the object has no such label.
  bool met_by(const std::string* value) const;
};

// All requirements must be met; an empty selector selects everything.
struct Selector {
  std::vector<Requirement> requirements;

  bool empty() const { return requirements.empty(); }
  bool matches_labels(const JsonObject& labels) const;
  bool matches_fields(const Json& object) const;
};

// "a=b,c!=d,e in (f,g),h notin (i),j,!k"
Result<Selector> parse_label_selector(std::string_view text);
// "metadata.name=a,spec.nodeName!=b"; fields that the resource does not offer are refused.
Result<Selector> parse_field_selector(std::string_view text, const Resource& resource);
// A metav1.LabelSelector: matchLabels and matchExpressions.
Selector selector_of(const Json& label_selector);
// One {key, operator, values} of a matchExpressions list.
Requirement requirement_of(const Json& expression);

// The text of a scalar at a dotted path, "" when it is missing.
std::string field_text(const Json& object, std::string_view dotted_path);

}  // namespace nvdra::sandbox
