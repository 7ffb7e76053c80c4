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
  explicit Item(Json json)
      : json_(std::move(json)),
        name_(text_or_empty(json_, "metadata/name")),
        space_(text_or_empty(json_, "metadata/namespace")),
        uid_(text_or_empty(json_, "metadata/uid")),
        version_(text_or_empty(json_, "metadata/resourceVersion")),
        deleting_(find(json_, "metadata/deletionTimestamp") != nullptr) {}
  Item(const Item&) = delete;  // the views are into json_
  Item& operator=(const Item&) = delete;

  const Json& json() const { return json_; }
  // The object as JSON text, kept for the next reader: lists and watches only join texts.
  const std::string& text() const {
    if (text_.empty()) text_ = to_text(json_);
    return text_;
  }

  ObjectKey key() const { return {std::string(space_), std::string(name_)}; }
  std::string_view name() const { return name_; }
  std::string_view space() const { return space_; }
  std::string_view uid() const { return uid_; }
  std::string_view version() const { return version_; }
  bool deleting() const { return deleting_; }

private:
  const Json json_;
  mutable std::string text_;
  std::string_view name_;
  std::string_view space_;
  std::string_view uid_;
  std::string_view version_;
  bool deleting_;
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
