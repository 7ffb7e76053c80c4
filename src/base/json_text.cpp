// Reading JSON texts: parse_json() and duplicate_keys() of base/json.hpp.
#include "base/json.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace nvdra {
namespace {

constexpr std::size_t deepest = 64;

boost::json::parse_options options() {
  boost::json::parse_options limits;
  limits.max_depth = deepest;
  return limits;
}

Failure bad_text(std::string_view text, std::size_t at, std::string_view reason) {
  std::string_view before = text.substr(0, at);
  auto line = std::ranges::count(before, '\n') + 1;
  std::size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 == 0
  return refuse(fmt::format("invalid JSON at line {}, column {}: {}", line, column, reason));
}

// Hears the parser's events and remembers which keys each open object has had.
class KeyListener {
public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;
  using Code = boost::system::error_code;
  using Text = boost::json::string_view;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return open(false); }
  bool on_object_end(std::size_t, Code&) { return close(); }
  bool on_array_begin(Code&) { return open(true); }
  bool on_array_end(std::size_t, Code&) { return close(); }

  bool on_key_part(Text part, std::size_t, Code&) {
    key_ += std::string_view(part);
    return true;
  }
  bool on_key(Text part, std::size_t, Code&) {
    key_ += std::string_view(part);
    Level& level = levels_.back();
    level.key = std::move(key_);
    key_.clear();
    if (!level.keys.insert(level.key).second) note();
    return true;
  }

  bool on_string_part(Text, std::size_t, Code&) { return true; }
  bool on_string(Text, std::size_t, Code&) { return value(); }
  bool on_number_part(Text, Code&) { return true; }
  bool on_int64(std::int64_t, Text, Code&) { return value(); }
  bool on_uint64(std::uint64_t, Text, Code&) { return value(); }
  bool on_double(double, Text, Code&) { return value(); }
  bool on_bool(bool, Code&) { return value(); }
  bool on_null(Code&) { return value(); }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }

  std::vector<std::string> found;

private:
  struct Level {
    bool is_array = false;
    std::size_t index = 0;
    std::string key;
    std::set<std::string> keys;
  };

  bool open(bool is_array) {
    levels_.push_back({.is_array = is_array, .index = 0, .key = {}, .keys = {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  // A value is complete.
  bool value() {
    if (!levels_.empty()) ++levels_.back().index;
    return true;
  }
  // The path of the current key is that of a duplicate.
  void note() {
    std::string path;
    for (const Level& level : levels_) {
      if (level.is_array)
        path += fmt::format("[{}]", level.index);
      else
        path += (path.empty() ? "" : ".") + level.key;
    }
    if (std::ranges::find(found, path) == found.end()) found.push_back(std::move(path));
  }

  std::vector<Level> levels_;
  std::string key_;
};

}  // namespace

Result<Json> parse_json(std::string_view text) {
  boost::json::parser parser({}, options());
  boost::system::error_code failed;
  std::size_t used = parser.write_some(text.data(), text.size(), failed);
  if (failed) return bad_text(text, used, failed.message());
  if (used < text.size()) return bad_text(text, used, "extra data");
  return parser.release();
}

std::vector<std::string> duplicate_keys(std::string_view text) {
  boost::json::basic_parser<KeyListener> parser(options());
  boost::system::error_code failed;
  parser.write_some(false, text.data(), text.size(), failed);
  return std::move(parser.handler().found);
}

}  // namespace nvdra
