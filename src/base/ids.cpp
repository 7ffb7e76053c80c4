#include "base/ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>

namespace nvdra {
namespace {

constexpr std::string_view uuid_shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool is_alphanumeric(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

bool is_dns_label(std::string_view text) {
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

}  // namespace

bool is_uuid(std::string_view text) {
  return text.size() == uuid_shape.size() &&
         std::ranges::equal(text, uuid_shape, [](char c, char shape) {
           return shape == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == '-';
         });
}

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (;;) {
    std::size_t dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_label_value(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= 63 && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(
             text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

std::string random_uuid() {
  std::random_device source;
  auto word = [&source] { return static_cast<std::uint32_t>(source()); };
  std::uint32_t a = word(), b = word(), c = word(), d = word();
  b = (b & 0xffff0fffU) | 0x00004000U;  // version 4
  c = (c & 0x3fffffffU) | 0x80000000U;  // variant 1
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", a, b >> 16, b & 0xffffU, c >> 16,
                     c & 0xffffU, d);
}

}  // namespace nvdra
