#include "imex/driver_version.hpp"

#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace nvdra::imex {

std::strong_ordering DriverVersion::operator<=>(const DriverVersion& other) const {
  const std::size_t count = std::max(numbers.size(), other.numbers.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mine = i < numbers.size() ? numbers[i] : 0;
    const std::uint64_t theirs = i < other.numbers.size() ? other.numbers[i] : 0;
    if (mine != theirs) return mine <=> theirs;
  }
  return std::strong_ordering::equal;
}

Result<DriverVersion> parse_driver_version(std::string_view text) {
  std::string_view rest = trim(text);
  if (rest.starts_with('v')) rest.remove_prefix(1);
  const bool padded = rest.size() > 1 && rest[0] == '0' && rest[1] >= '0' && rest[1] <= '9';
  DriverVersion version;
  for (;;) {
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto number = parse_number<std::uint64_t>(digits);
    if (!number) break;
    version.numbers.push_back(*number);
    rest.remove_prefix(digits.size());
    if (!rest.starts_with('.')) break;
    rest.remove_prefix(1);
  }
  if (version.numbers.size() < 2 || padded)
    return refuse(
        fmt::format("\"{}\" is no driver version; one looks like {}", text, host_names_since));
  return version;
}

}  // namespace nvdra::imex
