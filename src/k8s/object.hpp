// A Kubernetes object: JSON with a few fields everybody asks for. Objects are never mutated and
// sent back; changes are patches.
#pragma once

#include "base/json.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::k8s {

// Where a kind of object lives in the API.
struct ResourceType {
  std::string group;  // "" = core
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  bool operator==(const ResourceType&) const = default;
};

// namespace/name of one object; the namespace of a cluster-scoped one is "".
struct ObjectKey {
  std::string space;
  std::string name;

  std::string text() const { return space.empty() ? name : space + "/" + name; }
  auto operator<=>(const ObjectKey&) const = default;
};

class Object {
public:
  Object() = default;
  explicit Object(Json json) : json_(std::move(json)) {}

  const Json& json() const { return json_; }
  ObjectKey key() const;
  std::string_view name() const { return text_or_empty(json_, "metadata/name"); }
  std::string_view space() const { return text_or_empty(json_, "metadata/namespace"); }
  std::string_view uid() const { return text_or_empty(json_, "metadata/uid"); }
  std::string_view version() const { return text_or_empty(json_, "metadata/resourceVersion"); }
  std::int64_t generation() const { return int_or(json_, "metadata/generation", 0); }
  bool deleting() const { return find(json_, "metadata/deletionTimestamp") != nullptr; }
  // nullptr when the object has no such label / annotation; the value may be empty.
  const Json* label(std::string_view name) const;
  const Json* annotation(std::string_view name) const;
  // The same as text; "" when there is none, or it is no text.
  std::string_view label_text(std::string_view name) const;
  std::string_view annotation_text(std::string_view name) const;
  bool has_finalizer(std::string_view name) const;
  // The index of the finalizer in metadata.finalizers, or -1 (for guarded JSON patches).
  int finalizer_index(std::string_view name) const;

private:
  Json json_;
};

using ObjectPtr = std::shared_ptr<const Object>;

// True when `a` is a newer resourceVersion than `b` (numeric, as the server's versions are compared
// by length and then by digits). An empty one is oldest.
bool newer(std::string_view a, std::string_view b);

}  // namespace nvdra::k8s
