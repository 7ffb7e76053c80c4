// The words that flags and variables are made of. parse_bool(), parse_duration() and nearest() are
// declared in base/args.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nvdra {

// Without blanks and tabs at its ends.
std::string_view trimmed(std::string_view text);
// Decimal, with a sign or without, within 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);
// Finite.
std::optional<double> parse_real(std::string_view text);

}  // namespace nvdra
