// Identifiers and continue tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace nvdra::sandbox {

// A random version 4 UUID.
std::string make_uid(std::mt19937_64& random);

std::string base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

}  // namespace nvdra::sandbox
