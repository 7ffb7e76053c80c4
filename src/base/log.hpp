// Logging in klog's text form or as JSON lines, on stderr.
//   LOG_INFO(2, "Caches populated", {{"type", "ComputeDomain"}});
//   LOG_ERROR("Cannot write the CDI file, retrying", {{"file", path}, {"err", error.text()}});
//   LOG_INFO(0, log::Plain{fmt::format("Permanent error: {}", text)});
// Text:  I1201 07:08:00.000000       1 reflector.cpp:42] "Caches populated" type="ComputeDomain"
//        (Plain: the message without quotes, klog's Infof form)
// JSON:  {"ts":1733036880000.123,"caller":"k8s/reflector.cpp:42","msg":"...","v":2,"type":"..."}
//        (errors: no "v", "err" as given)
// Levels: 0 start-up and permanent errors, 1 confirmations, 2 event handling, 3 list/watch,
// 4 clean-up details, 5 slices, 6 API and gRPC traffic, 7 health checks (node-side.md 14).
// Any thread may log; a line is one write(2), never buffered. Control characters are escaped, so a
// message is one line whatever it holds.
// Library folders log at level 1 and above only; whoever stops an error's way up logs it, once.
#pragma once

#include "base/result.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace nvdra::log {

enum class Format { text, json };
enum class Severity { info, warning, error, fatal };

struct Field {
  Field(std::string_view k, std::string_view v) : key(k), value(v), quoted(true) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v), quoted(true) {}
  Field(std::string_view k, const char* v) : key(k), value(v), quoted(true) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), quoted(false) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Field(std::string_view k, Number v) : key(k), value(std::to_string(v)), quoted(false) {}

  std::string_view key;
  std::string value;
  bool quoted;  // a string; otherwise a number or boolean
};

using Fields = std::initializer_list<Field>;

// A message in klog's Infof form: no quotes, no fields.
struct Plain {
  std::string message;
};

struct Where {
  Severity severity;
  int verbosity;
  const char* file;  // __FILE__
  int line;
};

struct Options {
  int verbosity = 0;
  // "pattern=N,pattern=N"; patterns are file names without extension, with * and ?
  std::string vmodule = {};
  Format format = Format::text;
  bool split_stream = false;  // errors to stderr, everything else to stdout
};

// Errors name the bad item of vmodule. Call before the first line is written.
Result<void> configure(const Options& wanted);

bool enabled(int verbosity, const char* file);
void write(const Where& where, std::string_view message, Fields fields = {});
void write(const Where& where, const Plain& message);

// For tests: lines, without their newline, go to `to` instead of stderr; nullptr restores stderr.
void redirect(void (*to)(std::string_view line));

}  // namespace nvdra::log

#define LOG_AT_(severity, verbosity, ...)                                                    \
  do {                                                                                       \
    if (::nvdra::log::enabled(verbosity, __FILE__))                                          \
      ::nvdra::log::write({::nvdra::log::Severity::severity, verbosity, __FILE__, __LINE__}, \
                          __VA_ARGS__);                                                      \
  } while (false)

#define LOG_INFO(verbosity, ...) LOG_AT_(info, verbosity, __VA_ARGS__)
#define LOG_WARNING(...) LOG_AT_(warning, 0, __VA_ARGS__)
#define LOG_ERROR(...) LOG_AT_(error, 0, __VA_ARGS__)
