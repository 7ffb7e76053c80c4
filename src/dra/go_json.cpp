#include "dra/go_json.hpp"

#include "base/utf8.hpp"

#include <fmt/format.h>

namespace nvdra::dra {
namespace {

// The escaped spelling of an ASCII character, "" if it stands for itself.
std::string escaped(char c) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: break;
  }
  auto code = static_cast<unsigned char>(c);
  if (code < 0x20 || c == '<' || c == '>' || c == '&') return fmt::format("\\u{:04x}", code);
  return {};
}

// How many characters at the start of `text` stand for themselves: nearly all of them, nearly
// always.
std::size_t plain_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    auto code = static_cast<unsigned char>(text[length]);
    if (code < 0x20 || code >= 0x80 || code == '"' || code == '\\' || code == '<' || code == '>' ||
        code == '&')
      break;
    ++length;
  }
  return length;
}

class Scanner {
public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  std::size_t at() const { return at_; }
  void space() {
    while (!at_end() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    space();
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // A string with its quotes; empty if there is none here.
  std::string_view quoted() {
    space();
    std::size_t begin = at_;
    if (at_end() || text_[at_] != '"') return {};
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return text_.substr(begin, at_ - begin);
      }
    }
    at_ = text_.size();
    return {};
  }
  // Any value; empty if there is none here or it does not end.
  std::string_view value() {
    space();
    std::size_t begin = at_;
    if (at_end()) return {};
    if (text_[at_] == '"') return quoted();
    if (text_[at_] == '{' || text_[at_] == '[') return nested();
    at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

private:
  std::string_view nested() {
    std::size_t begin = at_;
    for (std::size_t depth = 0; !at_end();) {
      char c = text_[at_];
      if (c == '"') {
        if (quoted().empty()) return {};
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return text_.substr(begin, at_ - begin);
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    std::size_t plain = plain_length(text.substr(i));
    out += text.substr(i, plain);
    i += plain;
    if (i == text.size()) break;
    std::size_t length = utf8_sequence(text.substr(i));
    std::string_view sequence = text.substr(i, length);
    if (length == 0) {
      out += "\\ufffd";
    } else if (sequence == "\u2028") {
      out += "\\u2028";
    } else if (sequence == "\u2029") {
      out += "\\u2029";
    } else if (std::string escape = length == 1 ? escaped(text[i]) : ""; !escape.empty()) {
      out += escape;
    } else {
      out += sequence;
    }
    i += std::max<std::size_t>(length, 1);
  }
  out += '"';
}

void append_compact(std::string& out, const Json& value) {
  if (const auto* text = value.if_string()) {
    append_quoted(out, *text);
  } else if (const auto* array = value.if_array()) {
    const char* separator = "[";
    for (const Json& item : *array) {
      out += separator;
      append_compact(out, item);
      separator = ",";
    }
    out += array->empty() ? "[]" : "]";
  } else if (const auto* object = value.if_object()) {
    const char* separator = "{";
    for (const auto& [key, item] : *object) {
      out += separator;
      append_quoted(out, key);
      out += ':';
      append_compact(out, item);
      separator = ",";
    }
    out += object->empty() ? "{}" : "}";
  } else {
    out += to_text(value);
  }
}

Result<std::vector<RawMember>> members_of(std::string_view text) {
  Scanner scan(text);
  auto wrong = [&](std::string_view wanted) {
    return refuse(fmt::format("byte {}: expected {}", scan.at(), wanted));
  };
  std::vector<RawMember> members;
  if (!scan.take('{')) return wrong("'{'");
  if (!scan.take('}')) {
    do {
      std::string_view key = scan.quoted();
      if (key.empty()) return wrong("a key in quotes");
      if (!scan.take(':')) return wrong("':'");
      std::string_view value = scan.value();
      if (value.empty()) return wrong("a complete value");
      members.push_back({key, value});
    } while (scan.take(','));
    if (!scan.take('}')) return wrong("'}' or ','");
  }
  scan.space();
  if (!scan.at_end()) return wrong("nothing more");
  return members;
}

std::string_view value_of(const std::vector<RawMember>& members, std::string_view key) {
  for (const RawMember& member : members)
    if (member.key.substr(1, member.key.size() - 2) == key) return member.value;
  return {};
}

std::string key_text(std::string_view quoted) {
  if (quoted.find('\\') == std::string_view::npos)
    return std::string(quoted.substr(1, quoted.size() - 2));
  Result<Json> decoded = parse_json(quoted);
  const auto* text = decoded ? decoded->if_string() : nullptr;
  return text ? std::string(*text) : std::string(quoted);
}

}  // namespace nvdra::dra
