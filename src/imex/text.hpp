// Small pure helpers for the line formats of the driver's files and tools.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace nvdra::imex {

// Without blanks, tabs and carriage returns at both ends.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\v\f";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Takes the first line off `text` (without its line end); nothing is left at the end.
inline std::optional<std::string_view> next_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// The whole of `text` as a decimal number that fits.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [stop, error] = std::from_chars(text.begin(), text.end(), number);
  if (text.empty() || error != std::errc{} || stop != text.end()) return std::nullopt;
  return number;
}

// What a tool printed, for one line of an error: its lines joined by " | ", at most 400 bytes.
std::string excerpt(std::string_view text);

}  // namespace nvdra::imex
