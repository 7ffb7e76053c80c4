#include "base/parse_words.hpp"

#include "base/args.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace nvdra {
namespace {

using std::chrono::nanoseconds;

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Longer names first: "ms" is not "m" followed by "s".
constexpr std::array units{
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"\xc2\xb5s", 1'000},  // the micro sign
    Unit{"\xce\xbcs", 1'000},  // the Greek letter
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
};

const Unit* unit_at(std::string_view text) {
  auto found =
      std::ranges::find_if(units, [&](const Unit& unit) { return text.starts_with(unit.name); });
  return found == units.end() ? nullptr : &*found;
}

Failure bad_duration(std::string_view text) {
  return refuse(fmt::format("\"{}\" is not a duration, for example 1m30s", text));
}

// The digits at the start of `rest`, taken off.
std::string_view take_digits(std::string_view& rest) {
  std::size_t length = std::min(rest.find_first_not_of("0123456789"), rest.size());
  std::string_view digits = rest.substr(0, length);
  rest.remove_prefix(length);
  return digits;
}

// One "number unit" at the start of `rest`, taken off; nothing when there is none or it is more
// than 64 bits hold.
std::optional<std::int64_t> take_term(std::string_view& rest) {
  std::string_view whole = take_digits(rest), fraction;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
  }
  if (whole.empty() && fraction.empty()) return {};
  const Unit* unit = unit_at(rest);
  if (!unit) return {};
  rest.remove_prefix(unit->name.size());

  std::int64_t length = 0;
  if (!whole.empty()) {
    std::optional<std::int64_t> number = parse_integer(whole);
    if (!number || __builtin_mul_overflow(*number, unit->nanoseconds, &length)) return {};
  }
  double part = 0, place = 1;
  for (char digit : fraction) part += (digit - '0') * (place /= 10);
  auto extra = static_cast<std::int64_t>(part * static_cast<double>(unit->nanoseconds) + 1e-6);
  if (__builtin_add_overflow(length, extra, &length)) return {};
  return length;
}

// The number of single-letter edits between two words, without regard to case.
std::size_t edits(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::int64_t number = 0;
  auto [stop, failed] = std::from_chars(text.begin(), text.end(), number);
  if (failed != std::errc{} || stop != text.end()) return {};
  return number;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0;
  auto [stop, failed] = std::from_chars(text.begin(), text.end(), number);
  if (failed != std::errc{} || stop != text.end() || !std::isfinite(number)) return {};
  return number;
}

Result<bool> parse_bool(std::string_view text) {
  constexpr std::array<std::string_view, 6> yes{"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> no{"0", "f", "F", "FALSE", "false", "False"};
  if (std::ranges::find(yes, text) != yes.end()) return true;
  if (std::ranges::find(no, text) != no.end()) return false;
  return refuse(fmt::format("\"{}\" is not true or false", text));
}

Result<nanoseconds> parse_duration(std::string_view text) {
  std::string_view rest = text;
  bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return nanoseconds(0);
  if (rest.empty()) return bad_duration(text);

  std::int64_t total = 0;
  while (!rest.empty()) {
    std::optional<std::int64_t> term = take_term(rest);
    if (!term || __builtin_add_overflow(total, *term, &total)) return bad_duration(text);
  }
  return nanoseconds(negative ? -total : total);
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    std::size_t distance = edits(word, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace nvdra
