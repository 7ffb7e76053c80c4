// The body of a watch: bytes → lines → events. Pure; chunk borders mean nothing.
#pragma once

#include "k8s/watch.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace nvdra::k8s {

// Cuts a stream of bytes into lines.
class LineSplitter {
public:
  void feed(std::string_view bytes);
  // The next complete line without its end, empty ones skipped; nullopt when more bytes are needed.
  std::optional<std::string> next();
  // What follows the last line end: an event that was cut off, or "".
  std::string rest();
  // Bytes held.
  std::size_t waiting() const { return bytes_.size() - begin_; }

private:
  std::string bytes_;
  std::size_t begin_ = 0;    // of the next line
  std::size_t scanned_ = 0;  // no line end before this position
};

// One line of a watch. nullopt: an event type that we do not know, to be ignored. The object of an
// added, modified or deleted event gets apiVersion and kind if it has none. Errors:
// malformed_answer.
Result<std::optional<WatchEvent>> parse_watch_event(std::string_view line,
                                                    const ResourceType& type);

// What an ERROR event means; decided by `code` and `reason` alone, because its kind may be missing.
Failure failure_of_event(const WatchEvent& event);

// Fills in what lists leave out and what owner references need.
void stamp_type(Json& object, const ResourceType& type);

}  // namespace nvdra::k8s
