// The columns of built-in kinds, as kubectl users know them.
#pragma once

#include "base/json.hpp"
#include "base/time.hpp"

#include <span>

namespace nvdra::sandbox {

struct PrintedColumn {
  std::string_view name;
  std::string (*cell)(const Json& object, WallClock::time_point now);
  bool wide = false;  // only with -o wide
};

// Without the first one, Name. Kinds without a row of their own have Age.
std::span<const PrintedColumn> printed_columns(std::string_view plural);

}  // namespace nvdra::sandbox
