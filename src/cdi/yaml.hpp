// A short writer of block YAML: 4-space indentation, scalars quoted only where they must be.
// The output is what Go's yaml.v3 prints for the same values, except that a string which holds a
// line break is written in double quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nvdra::cdi {

// `text` as a YAML scalar that reads back as that very string.
std::string yaml_scalar(std::string_view text);

// Writes one document. Keys and items come in the order of the calls.
class YamlWriter {
public:
  void key(std::string_view name, std::string_view text);
  void key(std::string_view name, std::uint64_t number);
  // "name:", and all until end() lies below it: keys of a mapping, or items of a sequence.
  void begin(std::string_view name);
  void empty_mapping(std::string_view name);
  void end() { indents_.pop_back(); }
  // One item of a sequence.
  void item(std::string_view text);
  void item(std::uint64_t number);
  // An item that is a mapping: the keys until end() are its own.
  void begin_item();
  // Whole lines that were written at this place before.
  void lines(std::string_view text) { text_ += text; }

  // What has been written so far.
  std::string_view so_far() const { return text_; }
  std::string text() && { return std::move(text_); }

private:
  void start_line();

  std::string text_ = "---\n";
  std::vector<std::size_t> indents_ = {0};
  bool first_of_item_ = false;
};

}  // namespace nvdra::cdi
