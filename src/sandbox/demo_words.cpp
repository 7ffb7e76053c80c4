#include "sandbox/demo_words.hpp"

#include <optional>

namespace nvdra::sandbox {
namespace {

// Takes "${NAME}" off the front of `line`.
std::optional<std::string> take_variable(std::string_view& line, const Variables& variables) {
  if (!line.starts_with("${")) return std::nullopt;
  const auto end = line.find('}');
  if (end == std::string_view::npos) return std::nullopt;
  const auto found = variables.find(line.substr(2, end - 2));
  line.remove_prefix(end + 1);
  return found == variables.end() ? std::string() : found->second;
}

}  // namespace

std::vector<std::string> shell_words(std::string_view line, const Variables& variables) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  while (!line.empty()) {
    if (quote != '\'') {
      if (const auto value = take_variable(line, variables)) {
        word = word.value_or("") + *value;
        continue;
      }
    }
    const char c = line.front();
    line.remove_prefix(1);
    if (quote == 0 && c == '\\' && line.starts_with('\n')) continue;
    if (quote == 0 && (c == ' ' || c == '\n')) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
    } else if (quote == c) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      word = word.value_or("");
    } else {
      word = word.value_or("") + c;
    }
  }
  if (word) words.push_back(*word);
  return words;
}

}  // namespace nvdra::sandbox
