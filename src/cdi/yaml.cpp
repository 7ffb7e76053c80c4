#include "cdi/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::cdi {
namespace {

constexpr std::size_t step = 4;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

constexpr std::string_view digits = "0123456789";

std::string_view leading_digits(std::string_view text) {
  return text.substr(0, text.find_first_not_of(digits));
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text;
}

// Words that YAML 1.1 or 1.2 reads as null, boolean, infinity, not-a-number or a merge.
bool is_reserved_word(std::string_view text) {
  static constexpr auto words = std::to_array<std::string_view>({
      "",      "~",    "null", "Null",  "NULL",  "true",  "True",  "TRUE",  "false", "False",
      "FALSE", "y",    "Y",    "yes",   "Yes",   "YES",   "on",    "On",    "ON",    "n",
      "N",     "no",   "No",   "NO",    "off",   "Off",   "OFF",   ".nan",  ".NaN",  ".NAN",
      ".inf",  ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", "<<",
  });
  return std::ranges::find(words, text) != words.end();
}

bool is_integer(std::string_view text) {
  text = without_sign(text);
  const std::string_view prefix = text.substr(0, 2);
  if (prefix == "0x" || prefix == "0X") return all_of(text.substr(2), "0123456789abcdefABCDEF");
  if (prefix == "0o" || prefix == "0O") return all_of(text.substr(2), "01234567");
  if (prefix == "0b" || prefix == "0B") return all_of(text.substr(2), "01");
  return all_of(text, digits);
}

// [sign] digits [. digits] [e [sign] digits], with digits before or after the point.
bool is_real(std::string_view text) {
  text = without_sign(text);
  const std::string_view whole = leading_digits(text);
  text.remove_prefix(whole.size());
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view fraction = leading_digits(text);
    if (whole.empty() && fraction.empty()) return false;
    text.remove_prefix(fraction.size());
  } else if (whole.empty()) {
    return false;
  }
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  return all_of(without_sign(text.substr(1)), digits);
}

// Base 60 of YAML 1.1: digits, then at least one ":" with a number below 60, then a fraction.
bool is_sexagesimal(std::string_view text) {
  text = without_sign(text);
  if (text.empty() || !is_digit(text.front())) return false;
  text.remove_prefix(std::min(text.find_first_not_of("0123456789_"), text.size()));
  bool parts = false;
  while (text.starts_with(':')) {
    const std::string_view part = leading_digits(text.substr(1));
    if (part.empty() || part.size() > 2 || (part.size() == 2 && part.front() > '5')) return false;
    text.remove_prefix(1 + part.size());
    parts = true;
  }
  return parts && (text.empty() ||
                   (text.front() == '.' && text.find_first_not_of("0123456789_", 1) == text.npos));
}

// "2006-1-2", alone or followed by a time of day.
bool is_timestamp(std::string_view text) {
  if (leading_digits(text).size() != 4) return false;
  text.remove_prefix(4);
  for (int part = 0; part < 2; ++part) {
    if (!text.starts_with('-')) return false;
    const std::string_view number = leading_digits(text.substr(1));
    if (number.empty() || number.size() > 2) return false;
    text.remove_prefix(1 + number.size());
  }
  if (text.empty()) return true;
  return (text[0] == 'T' || text[0] == 't' || text[0] == ' ') && text.size() > 1 &&
         is_digit(text[1]);
}

// A reader would take the bare word for something other than a string.
bool reads_as_another_type(std::string_view text) {
  if (is_reserved_word(text)) return true;
  if (!is_digit(text[0]) && text[0] != '+' && text[0] != '-' && text[0] != '.') return false;
  std::string plain(text);
  std::erase(plain, '_');
  return is_integer(plain) || is_real(plain) || is_sexagesimal(text) || is_timestamp(text);
}

// The indicators of YAML, where they have a meaning in block context.
bool has_indicator(std::string_view text) {
  if (text.starts_with("---") || text.starts_with("...")) return true;
  constexpr std::string_view never_first = "#,[]{}&*!|>'\"%@`";
  if (never_first.find(text.front()) != text.npos) return true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool blank_before = i == 0 || text[i - 1] == ' ';
    const bool blank_after = i + 1 == text.size() || text[i + 1] == ' ';
    if (text[i] == ':' && blank_after) return true;
    if (text[i] == '#' && blank_before) return true;
    if (i == 0 && blank_after && (text[i] == '?' || text[i] == '-')) return true;
  }
  return false;
}

struct Character {
  char32_t code;
  std::size_t size;
};

// The next character of UTF-8 text; a byte that does not fit stands for itself.
Character next_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xC2 ? 0
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 0;
  if (size == 0 || size > text.size()) return {first, 1};
  if (size == 1) return {first, 1};
  char32_t code = first & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {first, 1};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, size};
}

bool is_printable(Character c) {
  if (c.size == 1) return c.code >= 0x20 && c.code < 0x7F;
  const bool line_break = c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
  return c.code >= 0xA0 && c.code < 0xFFFE && c.code != 0xFEFF && !line_break &&
         !(c.code >= 0xD800 && c.code < 0xE000);
}

bool all_printable(std::string_view text) {
  while (!text.empty()) {
    const Character c = next_character(text);
    if (!is_printable(c)) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

std::string escape(char32_t code) {
  switch (code) {
    case 0: return "\\0";
    case '\a': return "\\a";
    case '\b': return "\\b";
    case '\t': return "\\t";
    case '\n': return "\\n";
    case '\v': return "\\v";
    case '\f': return "\\f";
    case '\r': return "\\r";
    case 0x1B: return "\\e";
    case 0x85: return "\\N";
    case 0x2028: return "\\L";
    case 0x2029: return "\\P";
    default: break;
  }
  const auto number = static_cast<std::uint32_t>(code);
  if (number <= 0xFF) return fmt::format("\\x{:02X}", number);
  if (number <= 0xFFFF) return fmt::format("\\u{:04X}", number);
  return fmt::format("\\U{:08X}", number);
}

std::string double_quoted(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const Character c = next_character(text);
    if (c.code == '"' || c.code == '\\') quoted += '\\';
    if (is_printable(c))
      quoted += text.substr(0, c.size);
    else
      quoted += escape(c.code);
    text.remove_prefix(c.size);
  }
  return quoted + '"';
}

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += c;
    quoted += c;
  }
  return quoted + '\'';
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  if (reads_as_another_type(text) || !all_printable(text)) return double_quoted(text);
  if (text.starts_with(' ') || text.ends_with(' ') || has_indicator(text))
    return single_quoted(text);
  return std::string(text);
}

void YamlWriter::start_line() {
  const std::size_t indent = indents_.back();
  if (std::exchange(first_of_item_, false)) {
    text_.append(indent - 2, ' ');
    text_ += "- ";
  } else {
    text_.append(indent, ' ');
  }
}

void YamlWriter::key(std::string_view name, std::string_view text) {
  start_line();
  text_ += fmt::format("{}: {}\n", name, yaml_scalar(text));
}

void YamlWriter::key(std::string_view name, std::uint64_t number) {
  start_line();
  text_ += fmt::format("{}: {}\n", name, number);
}

void YamlWriter::begin(std::string_view name) {
  start_line();
  text_ += fmt::format("{}:\n", name);
  // The next multiple of the step, also from within an item, whose keys are 2 deeper than its dash.
  indents_.push_back((indents_.back() + step) / step * step);
}

void YamlWriter::empty_mapping(std::string_view name) {
  start_line();
  text_ += fmt::format("{}: {{}}\n", name);
}

void YamlWriter::item(std::string_view text) {
  start_line();
  text_ += fmt::format("- {}\n", yaml_scalar(text));
}

void YamlWriter::item(std::uint64_t number) {
  start_line();
  text_ += fmt::format("- {}\n", number);
}

void YamlWriter::begin_item() {
  indents_.push_back(indents_.back() + 2);
  first_of_item_ = true;
}

}  // namespace nvdra::cdi
