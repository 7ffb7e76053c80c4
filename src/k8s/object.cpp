#include "k8s/object.hpp"

namespace nvdra::k8s {
namespace {

const Json* entry(const Json& json, std::string_view map, std::string_view name) {
  const Json* values = find(json, map);
  return values ? get(*values, name) : nullptr;
}

std::string_view text_in(const Json* value) {
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

}  // namespace

ObjectKey Object::key() const {
  return {std::string(space()), std::string(name())};
}

const Json* Object::label(std::string_view name) const {
  return entry(json_, "metadata/labels", name);
}

const Json* Object::annotation(std::string_view name) const {
  return entry(json_, "metadata/annotations", name);
}

std::string_view Object::label_text(std::string_view name) const {
  return text_in(label(name));
}

std::string_view Object::annotation_text(std::string_view name) const {
  return text_in(annotation(name));
}

bool Object::has_finalizer(std::string_view name) const {
  return finalizer_index(name) >= 0;
}

int Object::finalizer_index(std::string_view name) const {
  int at = 0;
  for (const Json& finalizer : array_or_empty(json_, "metadata/finalizers")) {
    const boost::json::string* text = finalizer.if_string();
    if (text && std::string_view(*text) == name) return at;
    ++at;
  }
  return -1;
}

bool newer(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return a.size() > b.size();
  return a > b;
}

}  // namespace nvdra::k8s
