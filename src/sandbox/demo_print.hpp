// How kubectl prints objects. Pure.
#pragma once

#include "k8s/object.hpp"
#include "sandbox/api_table.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

// Columns three blanks apart; `with_space` puts the namespace first.
std::string print_table(const Resource& resource, const std::vector<k8s::Object>& objects,
                        bool with_space, WallClock::time_point now);

// "{.metadata.uid}" of an object; "" when it is not there.
std::string print_path(const Json& object, std::string_view path);

// A short `kubectl describe pod`, with its events.
std::string describe_pod(const Json& pod, const std::vector<k8s::Object>& events,
                         WallClock::time_point now);

// Rows of equal length, as a text.
std::string print_rows(const std::vector<std::vector<std::string>>& rows, std::string_view indent);

}  // namespace nvdra::sandbox
