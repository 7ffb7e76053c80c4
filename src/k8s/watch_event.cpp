#include "k8s/watch_event.hpp"

#include <fmt/format.h>

namespace nvdra::k8s {
namespace {

std::optional<WatchEvent::Kind> kind_of(std::string_view type) {
  using Kind = WatchEvent::Kind;
  if (type == "ADDED") return Kind::added;
  if (type == "MODIFIED") return Kind::modified;
  if (type == "DELETED") return Kind::deleted;
  if (type == "BOOKMARK") return Kind::bookmark;
  if (type == "ERROR") return Kind::error;
  return std::nullopt;
}

Failure malformed(std::string_view why, std::string_view line) {
  return fail(Errc::malformed_answer,
              fmt::format("watch event {}, it begins with {}", why, beginning_of(line)));
}

}  // namespace

void LineSplitter::feed(std::string_view bytes) {
  // Drop what has been handed out before growing.
  bytes_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  bytes_.append(bytes);
}

std::optional<std::string> LineSplitter::next() {
  for (;;) {
    std::size_t end = bytes_.find('\n', scanned_);
    if (end == std::string::npos) {
      scanned_ = bytes_.size();
      if (begin_ == bytes_.size()) {
        // Free the memory of a big event; small buffers are kept.
        if (bytes_.capacity() > std::size_t{64} * 1024) bytes_ = std::string();
        bytes_.clear();
        begin_ = scanned_ = 0;
      }
      return std::nullopt;
    }
    std::string line = bytes_.substr(begin_, end - begin_);
    begin_ = scanned_ = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) return line;
  }
}

std::string LineSplitter::rest() {
  std::string left = bytes_.substr(begin_);
  bytes_.clear();
  begin_ = scanned_ = 0;
  return left;
}

Result<std::optional<WatchEvent>> parse_watch_event(std::string_view line,
                                                    const ResourceType& type) {
  Result<Json> parsed = parse_json(line);
  if (!parsed) return malformed("is not JSON: " + parsed.error().text(), line);
  std::string_view name = text_or_empty(*parsed, "type");
  if (name.empty()) return malformed("has no type", line);
  std::optional<WatchEvent::Kind> kind = kind_of(name);
  if (!kind) return std::optional<WatchEvent>();
  const Json* object = get(*parsed, "object");
  if (!object || !object->is_object()) return malformed("has no object", line);

  Json taken = std::move(parsed->get_object().at("object"));
  if (*kind != WatchEvent::Kind::error) stamp_type(taken, type);
  return std::optional<WatchEvent>(WatchEvent{*kind, Object(std::move(taken))});
}

Failure failure_of_event(const WatchEvent& event) {
  const Json& status = event.object.json();
  std::string_view reason = text_or_empty(status, "reason");
  std::int64_t code = int_or(status, "code", 0);
  if (reason == "Expired" || reason == "Gone") code = 410;
  if (code < 400 || code > 599) code = 500;
  return failure_of(static_cast<int>(code), to_text(status));
}

void stamp_type(Json& object, const ResourceType& type) {
  if (!object.is_object()) return;
  JsonObject& fields = object.get_object();
  if (text_or_empty(object, "apiVersion").empty()) fields["apiVersion"] = type.api_version();
  if (text_or_empty(object, "kind").empty()) fields["kind"] = type.kind;
}

}  // namespace nvdra::k8s
