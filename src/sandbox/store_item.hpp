// One stored object: JSON that never changes, and its text, made once.
#pragma once

#include "base/json.hpp"
#include "k8s/object.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace nvdra::sandbox {

using k8s::ObjectKey;

class Item {
public:
  explicit Item(Json json) : json_(std::move(json)) {}

  const Json& json() const { return json_; }
  // The object as JSON text, kept for the next reader: lists and watches only join texts.
  const std::string& text() const {
    if (text_.empty()) text_ = to_text(json_);
    return text_;
  }

  ObjectKey key() const { return {std::string(space()), std::string(name())}; }
  std::string_view name() const { return text_or_empty(json_, "metadata/name"); }
  std::string_view space() const { return text_or_empty(json_, "metadata/namespace"); }
  std::string_view uid() const { return text_or_empty(json_, "metadata/uid"); }
  std::string_view version() const { return text_or_empty(json_, "metadata/resourceVersion"); }
  bool deleting() const { return find(json_, "metadata/deletionTimestamp") != nullptr; }

private:
  Json json_;
  mutable std::string text_;
};

using ItemPtr = std::shared_ptr<const Item>;

// metadata of an object that is being changed; made if it is missing.
inline JsonObject& metadata_of(Json& object) {
  if (!object.is_object()) object = JsonObject{};
  Json& metadata = object.get_object()["metadata"];
  if (!metadata.is_object()) metadata = JsonObject{};
  return metadata.get_object();
}

}  // namespace nvdra::sandbox
