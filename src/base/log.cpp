#include "base/log.hpp"

#include "base/time.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <ctime>
#include <vector>

namespace nvdra::log {
namespace {

struct Module {
  std::string pattern;
  int verbosity;
};

// Set once by configure(), before other threads exist; read by all of them.
Options options;
std::vector<Module> modules;
std::atomic<void (*)(std::string_view)> sink = nullptr;

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string_view stem(std::string_view path) {
  std::string_view name = base_name(path);
  return name.substr(0, name.find('.'));
}

// The last folder and the name: "k8s/reflector.cpp".
std::string_view folder_and_name(std::string_view path) {
  std::size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos || slash == 0) return path;
  return path.substr(path.find_last_of('/', slash - 1) + 1);
}

// '*' = any run of characters, '?' = any one.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The length of the valid UTF-8 sequence at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t length = lead >= 0xf0 && lead <= 0xf4   ? 4
                       : lead >= 0xe0 && lead <= 0xef ? 3
                       : lead >= 0xc2 && lead <= 0xdf ? 2
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  bool too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  bool too_big = lead == 0xf4 && byte(1) >= 0x90;
  return too_long || surrogate || too_big ? 0 : length;
}

enum class Escape { text, quoted, json };

// Appends `text` so that it stays on one line and cannot be taken for something else.
void append_escaped(std::string& line, std::string_view text, Escape how) {
  while (!text.empty()) {
    char c = text.front();
    auto code = static_cast<unsigned char>(c);
    std::size_t length = utf8_length(text);
    if (length == 0) {
      line += how == Escape::json ? "\\ufffd" : fmt::format("\\x{:02x}", code);
      length = 1;
    } else if (how != Escape::text && (c == '"' || c == '\\')) {
      line += {'\\', c};
    } else if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else if (c == '\t') {
      line += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      line += how == Escape::json ? fmt::format("\\u{:04x}", code) : fmt::format("\\x{:02x}", code);
    } else {
      line += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

void append_quoted(std::string& line, std::string_view text, Escape how) {
  line += '"';
  append_escaped(line, text, how);
  line += '"';
}

std::string text_header(const Where& where, WallClock::time_point now) {
  std::time_t seconds = WallClock::to_time_t(std::chrono::floor<std::chrono::seconds>(now));
  std::tm t{};
  ::localtime_r(&seconds, &t);
  auto fraction = now - std::chrono::floor<std::chrono::seconds>(now);
  return fmt::format("{}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:7} {}:{}] ",
                     "IWEF"[static_cast<int>(where.severity)], t.tm_mon + 1, t.tm_mday, t.tm_hour,
                     t.tm_min, t.tm_sec,
                     std::chrono::floor<std::chrono::microseconds>(fraction).count(),
                     ::syscall(SYS_gettid), base_name(where.file), where.line);
}

std::string text_line(const Where& where, std::string_view message, bool plain, Fields fields) {
  std::string line = text_header(where, WallClock::now());
  if (plain)
    append_escaped(line, message, Escape::text);
  else
    append_quoted(line, message, Escape::quoted);
  for (const Field& field : fields) {
    line += fmt::format(" {}=", field.key);
    if (field.quoted)
      append_quoted(line, field.value, Escape::quoted);
    else
      line += field.value;
  }
  return line;
}

// JSON has no nan and no inf.
bool is_json_literal(const Field& field) {
  return !field.quoted && field.value.find_first_of("ni") == std::string::npos;
}

std::string json_line(const Where& where, std::string_view message, Fields fields) {
  auto micros = std::chrono::floor<std::chrono::microseconds>(WallClock::now().time_since_epoch());
  std::string line =
      fmt::format("{{\"ts\":{}.{:03},\"caller\":\"{}:{}\",\"msg\":", micros.count() / 1000,
                  micros.count() % 1000, folder_and_name(where.file), where.line);
  append_quoted(line, message, Escape::json);
  bool is_error = where.severity == Severity::error || where.severity == Severity::fatal;
  if (!is_error) line += fmt::format(",\"v\":{}", where.verbosity);
  for (const Field& field : fields) {
    line += ',';
    append_quoted(line, field.key, Escape::json);
    line += ':';
    if (is_json_literal(field) || field.value == "true" || field.value == "false")
      line += field.value;
    else
      append_quoted(line, field.value, Escape::json);
  }
  return line + '}';
}

void put(const Where& where, std::string line) {
  if (auto* redirected = sink.load()) {
    redirected(line);
    return;
  }
  bool is_error = where.severity == Severity::error || where.severity == Severity::fatal;
  int stream = options.split_stream && !is_error ? STDOUT_FILENO : STDERR_FILENO;
  line += '\n';
  // One write(2) per line keeps the lines of several threads apart; the rest of a short write
  // follows, and what cannot be written is lost.
  std::string_view rest = line;
  while (!rest.empty()) {
    ssize_t written = ::write(stream, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void emit(const Where& where, std::string_view message, bool plain, Fields fields) {
  int kept_errno = errno;
  put(where, options.format == Format::json ? json_line(where, message, fields)
                                            : text_line(where, message, plain, fields));
  errno = kept_errno;
}

Result<Module> parse_module(std::string_view item) {
  std::size_t equals = item.find('=');
  int verbosity = -1;
  if (equals != std::string_view::npos && equals > 0) {
    std::string_view number = item.substr(equals + 1);
    auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), verbosity);
    if (failed != std::errc{} || end != number.data() + number.size()) verbosity = -1;
  }
  if (verbosity < 0)
    return refuse(fmt::format(
        "item \"{}\" of vmodule is not pattern=N with N from 0 to 2147483647, for example "
        "reflector=4",
        item));
  return Module{std::string(item.substr(0, equals)), verbosity};
}

}  // namespace

Result<void> configure(const Options& wanted) {
  std::vector<Module> parsed;
  std::string_view rest = wanted.vmodule;
  while (!rest.empty()) {
    std::size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (item.empty()) continue;
    Result<Module> module = parse_module(item);
    if (!module) return std::move(module).failure();
    parsed.push_back(*std::move(module));
  }
  options = wanted;
  modules = std::move(parsed);
  return ok();
}

bool enabled(int verbosity, const char* file) {
  if (verbosity <= options.verbosity) return true;
  for (const Module& module : modules)
    if (verbosity <= module.verbosity && matches(module.pattern, stem(file))) return true;
  return false;
}

void write(const Where& where, std::string_view message, Fields fields) {
  emit(where, message, false, fields);
}

void write(const Where& where, const Plain& message) {
  emit(where, message.message, true, {});
}

void redirect(void (*to)(std::string_view line)) {
  sink = to;
}

}  // namespace nvdra::log
