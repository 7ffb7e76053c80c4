// How kubectl prints objects. Pure.
#pragma once

#include "k8s/object.hpp"
#include "sandbox/api_table.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

struct TableForm {
  bool with_space = false;  // the namespace comes first
  bool wide = false;        // -o wide
};
// Columns three blanks apart.
std::string print_table(const Resource& resource, const std::vector<k8s::Object>& objects,
                        TableForm form, WallClock::time_point now);

// -o yaml, with the keys of each object in alphabetical order.
std::string print_yaml(const Json& object);

// "{.metadata.uid}" of an object; "" when it is not there.
std::string print_path(const Json& object, std::string_view path);

// A short `kubectl describe pod`, with its events.
std::string describe_pod(const Json& pod, const std::vector<k8s::Object>& events,
                         WallClock::time_point now);

// Rows of equal length, as a text.
std::string print_rows(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

}  // namespace nvdra::sandbox
