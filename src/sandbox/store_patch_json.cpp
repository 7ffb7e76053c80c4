#include "base/try.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_patch.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace nvdra::sandbox {
namespace {

Failure does_not_apply() {
  return deny(Reason::invalid, "the server rejected our request due to an error in our request");
}

Failure malformed(std::string_view what) {
  return deny(Reason::bad_request, fmt::format("error decoding patch: {}", what));
}

using Pointer = std::vector<std::string>;

Result<Pointer> parse_pointer(std::string_view text) {
  Pointer pointer;
  if (text.empty()) return pointer;
  if (text.front() != '/') return malformed(fmt::format("path {} must begin with /", text));
  for (std::size_t from = 1; from <= text.size();) {
    std::size_t slash = std::min(text.find('/', from), text.size());
    std::string part;
    for (std::size_t i = from; i < slash; ++i) {
      if (text[i] == '~' && i + 1 < slash && (text[i + 1] == '0' || text[i + 1] == '1'))
        part += text[++i] == '0' ? '~' : '/';
      else
        part += text[i];
    }
    pointer.push_back(std::move(part));
    from = slash + 1;
  }
  return pointer;
}

std::optional<std::size_t> index_of(const std::string& text, std::size_t limit) {
  std::size_t index = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (failed != std::errc{} || end != text.data() + text.size() || index >= limit)
    return std::nullopt;
  return index;
}

Json* step(Json& at, const std::string& part) {
  if (JsonObject* object = at.if_object()) return object->if_contains(part);
  JsonArray* array = at.if_array();
  if (!array) return nullptr;
  auto index = index_of(part, array->size());
  return index ? &(*array)[*index] : nullptr;
}

// The value at the pointer without its last `short_of` parts; nullptr when it is not there.
Json* follow(Json& root, const Pointer& pointer, std::size_t short_of) {
  Json* at = &root;
  for (std::size_t i = 0; at && i + short_of < pointer.size(); ++i) at = step(*at, pointer[i]);
  return at;
}

bool add(Json& root, const Pointer& pointer, Json value) {
  if (pointer.empty()) {
    root = std::move(value);
    return true;
  }
  Json* parent = follow(root, pointer, 1);
  if (!parent) return false;
  const std::string& last = pointer.back();
  if (JsonObject* object = parent->if_object()) {
    (*object)[last] = std::move(value);
    return true;
  }
  JsonArray* array = parent->if_array();
  if (!array) return false;
  auto index = last == "-" ? array->size() : index_of(last, array->size() + 1);
  if (!index) return false;
  array->insert(array->begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
  return true;
}

bool remove(Json& root, const Pointer& pointer) {
  if (pointer.empty()) return false;
  Json* parent = follow(root, pointer, 1);
  if (!parent) return false;
  if (JsonObject* object = parent->if_object()) return object->erase(pointer.back()) > 0;
  JsonArray* array = parent->if_array();
  auto index = array ? index_of(pointer.back(), array->size()) : std::nullopt;
  if (!index) return false;
  array->erase(array->begin() + static_cast<std::ptrdiff_t>(*index));
  return true;
}

bool replace(Json& root, const Pointer& pointer, Json value) {
  Json* at = follow(root, pointer, 0);
  if (at) *at = std::move(value);
  return at;
}

// `test` of a missing member against null succeeds, as with the API server's patch library.
bool test(Json& root, const Pointer& pointer, const Json& value) {
  const Json* at = follow(root, pointer, 0);
  return at ? *at == value : value.is_null();
}

Result<bool> apply_operation(Json& root, const Json& operation) {
  std::string_view name = text_or_empty(operation, "op");
  TRY(Pointer path, parse_pointer(text_or_empty(operation, "path")));
  if (name == "remove") return remove(root, path);
  if (name == "move" || name == "copy") {
    TRY(Pointer from, parse_pointer(text_or_empty(operation, "from")));
    const Json* source = follow(root, from, 0);
    if (!source) return false;
    Json value = *source;
    if (name == "move" && !remove(root, from)) return false;
    return add(root, path, std::move(value));
  }
  const Json* value = get(operation, "value");
  if (name != "add" && name != "replace" && name != "test") return false;
  if (!value) return malformed(fmt::format("operation {} has no value", name));
  if (name == "test") return test(root, path, *value);
  return name == "add" ? add(root, path, *value) : replace(root, path, *value);
}

}  // namespace

Result<Json> json_patch(Json target, const Json& patch) {
  const JsonArray* operations = patch.if_array();
  if (!operations) return malformed("a JSON patch is a list of operations");
  for (const Json& operation : *operations) {
    TRY(bool applied, apply_operation(target, operation));
    if (!applied) return does_not_apply();
  }
  return target;
}

}  // namespace nvdra::sandbox
