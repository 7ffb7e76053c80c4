#include "dra/claim_status.hpp"

#include "dra/go_json.hpp"

#include <algorithm>
#include <span>

namespace nvdra::dra {
namespace {

// A field of an API type: how it is written, and when it is left out.
struct Shape;
struct FieldShape {
  enum class Kind {
    text,           // always there, "" if missing
    time,           // always there, null if missing
    optional_text,  // left out when empty
    texts,          // list of strings, left out when empty
    number,         // left out when 0 or missing
    pointer,        // any scalar, left out only when missing
    text_map,       // sorted by key, left out when empty
    raw,            // as it is, null if missing
    optional_raw,   // left out when missing
    object,         // always there, with the fields of `of`
    optional_object,
    objects,  // list, left out when empty
    all_objects,
  };
  std::string_view name;
  Kind kind;
  const Shape* of = nullptr;
};
struct Shape {
  std::span<const FieldShape> fields;
};
using enum FieldShape::Kind;

// clang-format off
constexpr FieldShape toleration_fields[] = {
    {"key", optional_text}, {"operator", optional_text}, {"value", optional_text},
    {"effect", optional_text}, {"tolerationSeconds", pointer}};
constexpr Shape toleration{toleration_fields};

constexpr FieldShape result_fields[] = {
    {"request", text}, {"driver", text}, {"pool", text}, {"device", text},
    {"adminAccess", pointer}, {"tolerations", objects, &toleration},
    {"bindingConditions", texts}, {"bindingFailureConditions", texts},
    {"shareID", pointer}, {"consumedCapacity", text_map}};
constexpr Shape result{result_fields};

constexpr FieldShape opaque_fields[] = {{"driver", text}, {"parameters", raw}};
constexpr Shape opaque{opaque_fields};
constexpr FieldShape config_fields[] = {
    {"source", text}, {"requests", texts}, {"opaque", optional_object, &opaque}};
constexpr Shape config{config_fields};

constexpr FieldShape devices_fields[] = {{"results", objects, &result}, {"config", objects, &config}};
constexpr Shape devices{devices_fields};

constexpr FieldShape requirement_fields[] = {{"key", text}, {"operator", text}, {"values", texts}};
constexpr Shape requirement{requirement_fields};
constexpr FieldShape term_fields[] = {
    {"matchExpressions", objects, &requirement}, {"matchFields", objects, &requirement}};
constexpr Shape term{term_fields};
constexpr FieldShape selector_fields[] = {{"nodeSelectorTerms", all_objects, &term}};
constexpr Shape selector{selector_fields};

constexpr FieldShape allocation_fields[] = {
    {"devices", object, &devices}, {"nodeSelector", optional_object, &selector},
    {"allocationTimestamp", optional_text}};
constexpr Shape allocation{allocation_fields};

constexpr FieldShape consumer_fields[] = {
    {"apiGroup", optional_text}, {"resource", text}, {"name", text}, {"uid", text}};
constexpr Shape consumer{consumer_fields};

constexpr FieldShape condition_fields[] = {
    {"type", text}, {"status", text}, {"observedGeneration", number},
    {"lastTransitionTime", time}, {"reason", text}, {"message", text}};
constexpr Shape condition{condition_fields};
constexpr FieldShape network_fields[] = {
    {"interfaceName", optional_text}, {"ips", texts}, {"hardwareAddress", optional_text}};
constexpr Shape network{network_fields};
constexpr FieldShape device_status_fields[] = {
    {"driver", text}, {"pool", text}, {"device", text}, {"shareID", pointer},
    {"conditions", objects, &condition}, {"data", optional_raw},
    {"networkData", optional_object, &network}};
constexpr Shape device_status{device_status_fields};

constexpr FieldShape status_fields[] = {
    {"allocation", optional_object, &allocation}, {"reservedFor", objects, &consumer},
    {"devices", objects, &device_status}};
constexpr Shape status_shape{status_fields};
// clang-format on

void append_object(std::string& out, const Json& value, const Shape& shape);

void append_objects(std::string& out, const JsonArray& items, const Shape& shape) {
  out += '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    append_object(out, items[i], shape);
  }
  out += ']';
}

void append_text_map(std::string& out, const JsonObject& map) {
  std::vector<std::pair<std::string_view, const Json*>> sorted;
  for (const auto& [key, value] : map) sorted.emplace_back(key, &value);
  std::ranges::sort(sorted);
  out += '{';
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0) out += ',';
    append_quoted(out, sorted[i].first);
    out += ':';
    append_compact(out, *sorted[i].second);
  }
  out += '}';
}

// False if the field is left out. `found` is nullptr when the field is missing or null.
bool is_written(const Json* found, FieldShape::Kind kind) {
  switch (kind) {
    case text:
    case time:
    case raw:
    case object:
    case all_objects: return true;
    case optional_text: return found && found->is_string() && !found->get_string().empty();
    case texts:
    case objects: return found && found->is_array() && !found->get_array().empty();
    case number: return found && found->is_number() && *found != Json(0);
    case text_map: return found && found->is_object() && !found->get_object().empty();
    case optional_object: return found && found->is_object();
    case pointer:
    case optional_raw: return found != nullptr;
  }
  __builtin_unreachable();
}

void append_value(std::string& out, const Json* found, const FieldShape& field) {
  static const Json nothing;
  const Json& value = found ? *found : nothing;
  switch (field.kind) {
    case text:
    case optional_text:
      append_quoted(out, value.is_string() ? std::string_view(value.get_string()) : "");
      return;
    case object:
    case optional_object: append_object(out, value, *field.of); return;
    case objects:
    case all_objects: append_objects(out, array_or_empty(value, ""), *field.of); return;
    case text_map: append_text_map(out, value.get_object()); return;
    case time:
    case texts:
    case number:
    case pointer:
    case raw:
    case optional_raw: append_compact(out, value); return;
  }
}

void append_object(std::string& out, const Json& value, const Shape& shape) {
  out += '{';
  bool first = true;
  for (const FieldShape& field : shape.fields) {
    const Json* found = get(value, field.name);
    if (found && found->is_null()) found = nullptr;
    if (!is_written(found, field.kind)) continue;
    if (!first) out += ',';
    first = false;
    append_quoted(out, field.name);
    out += ':';
    append_value(out, found, field);
  }
  out += '}';
}

}  // namespace

std::string render_status(const Json& status) {
  std::string out;
  append_object(out, status, status_shape);
  return out;
}

bool same_status(const Json& a, const Json& b) {
  return render_status(a) == render_status(b);
}

std::vector<AllocatedDevice> allocated_devices(const Json& status) {
  std::vector<AllocatedDevice> found;
  for (const Json& item : array_or_empty(status, "allocation/devices/results")) {
    auto text_of = [&](std::string_view key) { return std::string(text_or_empty(item, key)); };
    found.push_back({text_of("request"), text_of("driver"), text_of("pool"), text_of("device"),
                     bool_or(item, "adminAccess", false)});
  }
  return found;
}

}  // namespace nvdra::dra
