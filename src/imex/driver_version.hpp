// Versions of the NVIDIA driver: numbers between dots (node-side.md 3.6.4).
#pragma once

#include "base/result.hpp"

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nvdra::imex {

struct DriverVersion {
  std::vector<std::uint64_t> numbers;

  // Number by number; absent ones count as zero.
  std::strong_ordering operator<=>(const DriverVersion& other) const;
  bool operator==(const DriverVersion& other) const { return (*this <=> other) == 0; }
};

// An optional 'v', at least two numbers, the first without leading zeros; what follows the numbers
// is ignored. The error names the text.
Result<DriverVersion> parse_driver_version(std::string_view text);

// Host names in the nodes file of nvidia-imex need this driver or a later one.
inline constexpr std::string_view host_names_since = "570.158.01";

}  // namespace nvdra::imex
