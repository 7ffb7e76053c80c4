#include "sandbox/api_protobuf.hpp"

#include "base/try.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace nvdra::sandbox {
namespace {

enum class Type { text, texts, number, truth, message, messages, text_map, bytes_map };

struct Field;
using Fields = std::span<const Field>;

struct Field {
  unsigned number;
  std::string_view name;
  Type type;
  Fields inner = {};
};

// Field numbers of the published .proto files of Kubernetes.
constexpr Field owner_fields[] = {
    {1, "kind", Type::text},        {3, "name", Type::text},
    {4, "uid", Type::text},         {5, "apiVersion", Type::text},
    {6, "controller", Type::truth}, {7, "blockOwnerDeletion", Type::truth}};
constexpr Field metadata_fields[] = {{1, "name", Type::text},
                                     {2, "generateName", Type::text},
                                     {3, "namespace", Type::text},
                                     {5, "uid", Type::text},
                                     {6, "resourceVersion", Type::text},
                                     {11, "labels", Type::text_map},
                                     {12, "annotations", Type::text_map},
                                     {13, "ownerReferences", Type::messages, owner_fields},
                                     {14, "finalizers", Type::texts}};
constexpr Field metadata_only[] = {{1, "metadata", Type::message, metadata_fields}};
constexpr Field config_map_fields[] = {{1, "metadata", Type::message, metadata_fields},
                                       {2, "data", Type::text_map},
                                       {3, "binaryData", Type::bytes_map},
                                       {4, "immutable", Type::truth}};
constexpr Field secret_fields[] = {{1, "metadata", Type::message, metadata_fields},
                                   {2, "data", Type::bytes_map},
                                   {3, "type", Type::text},
                                   {4, "stringData", Type::text_map}};
constexpr Field preconditions_fields[] = {{1, "uid", Type::text},
                                          {2, "resourceVersion", Type::text}};
constexpr Field delete_options_fields[] = {
    {1, "gracePeriodSeconds", Type::number},
    {2, "preconditions", Type::message, preconditions_fields},
    {3, "orphanDependents", Type::truth},
    {4, "propagationPolicy", Type::text},
    {5, "dryRun", Type::texts}};
constexpr Field eviction_fields[] = {{1, "metadata", Type::message, metadata_fields},
                                     {2, "deleteOptions", Type::message, delete_options_fields}};
constexpr Field attributes_fields[] = {{1, "namespace", Type::text}, {2, "verb", Type::text},
                                       {3, "group", Type::text},     {4, "version", Type::text},
                                       {5, "resource", Type::text},  {6, "subresource", Type::text},
                                       {7, "name", Type::text}};
constexpr Field path_fields[] = {{1, "path", Type::text}, {2, "verb", Type::text}};
constexpr Field access_spec_fields[] = {{1, "resourceAttributes", Type::message, attributes_fields},
                                        {2, "nonResourceAttributes", Type::message, path_fields}};
constexpr Field access_fields[] = {{1, "metadata", Type::message, metadata_fields},
                                   {2, "spec", Type::message, access_spec_fields}};
constexpr Field type_fields[] = {{1, "apiVersion", Type::text}, {2, "kind", Type::text}};

struct Kind {
  std::string_view name;
  Fields fields;
};
constexpr Kind kinds[] = {{"Namespace", metadata_only},
                          {"ServiceAccount", metadata_only},
                          {"ConfigMap", config_map_fields},
                          {"Secret", secret_fields},
                          {"DeleteOptions", delete_options_fields},
                          {"Eviction", eviction_fields},
                          {"SelfSubjectAccessReview", access_fields},
                          {"SelfSubjectReview", metadata_only}};

constexpr std::string_view magic("k8s\0", 4);

// One field as it stands on the wire.
struct Wire {
  unsigned number;
  std::uint64_t value = 0;      // of a varint
  std::string_view bytes = {};  // of everything else
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  // nullopt: the bytes are no message.
  std::optional<Wire> next() {
    std::optional<std::uint64_t> tag = varint();
    if (!tag) return std::nullopt;
    Wire field{static_cast<unsigned>(*tag >> 3)};
    std::optional<std::uint64_t> size;
    switch (*tag & 7) {
      case 0:
        size = varint();
        if (!size) return std::nullopt;
        field.value = *size;
        return field;
      case 1: size = 8; break;
      case 2: size = varint(); break;
      case 5: size = 4; break;
      default: return std::nullopt;
    }
    if (!size || *size > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, *size);
    rest_.remove_prefix(*size);
    return field;
  }

private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  std::string_view rest_;
};

std::optional<Json> decode(std::string_view bytes, Fields fields);

// {1: key, 2: value}
bool add_entry(Json& map, std::string_view bytes, bool binary) {
  std::string key, value;
  for (Reader reader(bytes); !reader.done();) {
    std::optional<Wire> field = reader.next();
    if (!field) return false;
    if (field->number == 1) key = field->bytes;
    if (field->number == 2) value = binary ? base64(field->bytes) : std::string(field->bytes);
  }
  if (!map.is_object()) map = JsonObject{};
  map.get_object()[key] = value;
  return true;
}

void append(Json& list, Json value) {
  if (!list.is_array()) list = JsonArray{};
  list.get_array().push_back(std::move(value));
}

bool add_field(Json& member, const Field& field, const Wire& wire) {
  switch (field.type) {
    case Type::text: member = wire.bytes; return true;
    case Type::texts: append(member, Json(wire.bytes)); return true;
    case Type::number: member = static_cast<std::int64_t>(wire.value); return true;
    case Type::truth: member = wire.value != 0; return true;
    case Type::text_map: return add_entry(member, wire.bytes, false);
    case Type::bytes_map: return add_entry(member, wire.bytes, true);
    case Type::message:
    case Type::messages: {
      std::optional<Json> inner = decode(wire.bytes, field.inner);
      if (!inner) return false;
      if (field.type == Type::message)
        member = *std::move(inner);
      else
        append(member, *std::move(inner));
      return true;
    }
  }
  __builtin_unreachable();
}

std::optional<Json> decode(std::string_view bytes, Fields fields) {
  JsonObject object;
  for (Reader reader(bytes); !reader.done();) {
    std::optional<Wire> wire = reader.next();
    if (!wire) return std::nullopt;
    auto field = std::ranges::find(fields, wire->number, &Field::number);
    if (field == fields.end()) continue;
    // The encoders of Kubernetes write empty texts; in JSON they are absent.
    bool empty_text = field->type == Type::text && wire->bytes.empty();
    if (!empty_text && !add_field(object[field->name], *field, *wire)) return std::nullopt;
  }
  return Json(std::move(object));
}

}  // namespace

Result<Json> from_protobuf(std::string_view body) {
  Failure malformed = deny(Reason::bad_request, "the protobuf body is malformed");
  if (!body.starts_with(magic)) return malformed;
  Reader reader(body.substr(magic.size()));
  std::string api_version, kind;
  std::string_view raw;
  while (!reader.done()) {
    std::optional<Wire> field = reader.next();
    if (!field) return malformed;
    if (field->number == 2) raw = field->bytes;
    if (field->number != 1) continue;
    std::optional<Json> type = decode(field->bytes, type_fields);
    if (!type) return malformed;
    api_version = text_or_empty(*type, "apiVersion");
    kind = text_or_empty(*type, "kind");
  }
  auto known = std::ranges::find(kinds, kind, &Kind::name);
  if (known == std::end(kinds))
    return deny(Reason::unsupported_media,
                fmt::format("the sandbox does not read a {} in protobuf; use kubectl apply, which "
                            "sends JSON",
                            kind));
  std::optional<Json> object = decode(raw, known->fields);
  if (!object) return malformed;
  object->get_object()["apiVersion"] = api_version;
  object->get_object()["kind"] = kind;
  return *std::move(object);
}

}  // namespace nvdra::sandbox
