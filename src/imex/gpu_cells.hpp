// What the two parsers of nvidia-smi's output share: single values.
#pragma once

#include "imex/gpu.hpp"

#include <string_view>

namespace nvdra::imex {

// "" for the tool's ways of saying that there is no value.
std::string_view value_of(std::string_view cell);

// A value and the line where it stands.
struct Cell {
  std::string_view value, line;
};

// The fabric's values of a CSV row or a Fabric section.
struct FabricCells {
  Cell state, status, clique, cluster;
};
Result<void> put_fabric(Gpu& gpu, const FabricCells& cells);

Failure not_understood(std::string_view line, std::string_view why);

bool says_no_devices(std::string_view line);

}  // namespace nvdra::imex
