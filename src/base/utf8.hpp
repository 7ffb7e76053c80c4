// Text as Unicode.
#pragma once

#include <cstddef>
#include <string_view>

namespace nvdra {

// The length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629: no overlong
// spelling, no surrogate); 0 if there is none. `text` is not empty.
std::size_t utf8_sequence(std::string_view text);

// The position of the first byte that belongs to no well-formed sequence; npos: all is UTF-8.
std::size_t first_not_utf8(std::string_view text);

}  // namespace nvdra
