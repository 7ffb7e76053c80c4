#include "sandbox/api_encode.hpp"

#include "sandbox/api_table.hpp"
#include "sandbox/api_versions.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

bool as_stored(const Shape& shape) {
  return shape.kind == Shape::Kind::object && shape.version == shape.resource->type.version;
}

Json partial(const Json& object) {
  const Json* metadata = get(object, "metadata");
  return JsonObject{{"kind", "PartialObjectMetadata"},
                    {"apiVersion", "meta.k8s.io/v1"},
                    {"metadata", metadata ? *metadata : Json(JsonObject{})}};
}

Json row_of(const Shape& shape, const Item& item, WallClock::time_point now) {
  JsonObject row{{"cells", table_cells(*shape.resource, item.json(), now)}};
  if (shape.include == "Metadata") row["object"] = partial(item.json());
  if (shape.include == "Object")
    row["object"] = to_served(*shape.resource, shape.version, item.json());
  return row;
}

Json table(const Shape& shape, JsonArray rows, JsonObject metadata, bool columns) {
  JsonObject table{
      {"kind", "Table"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", std::move(metadata)}};
  if (columns) table["columnDefinitions"] = table_columns(*shape.resource);
  table["rows"] = std::move(rows);
  return table;
}

std::string api_version(const Shape& shape) {
  const std::string& group = shape.resource->type.group;
  return group.empty() ? shape.version : group + "/" + shape.version;
}

JsonObject list_metadata(const Page& page) {
  JsonObject metadata{{"resourceVersion", std::to_string(page.version)}};
  if (!page.continue_from.empty()) {
    metadata["continue"] = page.continue_from;
    metadata["remainingItemCount"] = page.remaining;
  }
  return metadata;
}

std::string_view event_type(FeedEvent::Kind kind) {
  switch (kind) {
    case FeedEvent::Kind::added: return "ADDED";
    case FeedEvent::Kind::modified: return "MODIFIED";
    case FeedEvent::Kind::deleted: return "DELETED";
  }
  __builtin_unreachable();
}

}  // namespace

Shape shape_of(const Request& request, const Route& route) {
  Shape shape{.resource = route.resource, .version = route.version};
  std::string accept = request.header("accept");
  std::string first = accept.substr(0, accept.find(','));
  if (first.find("as=Table") != std::string::npos) shape.kind = Shape::Kind::table;
  if (first.find("as=PartialObjectMetadata") != std::string::npos)
    shape.kind = Shape::Kind::partial;
  std::string include = request.parameter("includeObject");
  if (!include.empty()) shape.include = include;
  return shape;
}

std::string encode_item(const Shape& shape, const Item& item, WallClock::time_point now) {
  if (as_stored(shape)) return item.text();
  if (shape.kind == Shape::Kind::partial) return to_text(partial(item.json()));
  if (shape.kind == Shape::Kind::object)
    return to_text(to_served(*shape.resource, shape.version, item.json()));
  JsonObject metadata{{"resourceVersion", item.version()}};
  return to_text(table(shape, JsonArray{row_of(shape, item, now)}, std::move(metadata), true));
}

std::string encode_page(const Shape& shape, const Page& page, WallClock::time_point now) {
  if (shape.kind == Shape::Kind::table) {
    JsonArray rows;
    for (const ItemPtr& item : page.items) rows.push_back(row_of(shape, *item, now));
    return to_text(table(shape, std::move(rows), list_metadata(page), true));
  }
  bool partial_list = shape.kind == Shape::Kind::partial;
  std::string kind = partial_list ? "PartialObjectMetadataList" : shape.resource->list_kind();
  std::string version = partial_list ? "meta.k8s.io/v1" : api_version(shape);
  std::string text = fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{},"items":[)", kind,
                                 version, to_text(list_metadata(page)));
  // Items of built-in kinds do not say what they are, as with the API server.
  std::string envelope =
      fmt::format(R"({{"apiVersion":"{}","kind":"{}",)", version, shape.resource->type.kind);
  bool bare = !partial_list && !shape.resource->custom;
  for (std::size_t i = 0; i < page.items.size(); ++i) {
    if (i > 0) text += ',';
    std::string item = encode_item(shape, *page.items[i], now);
    text += bare && item.starts_with(envelope) ? "{" + item.substr(envelope.size()) : item;
  }
  return text += "]}";
}

std::string encode_event(const Shape& shape, const FeedEvent& event, WallClock::time_point now,
                         bool first) {
  std::string object;
  if (shape.kind == Shape::Kind::table) {
    JsonObject metadata{{"resourceVersion", event.item->version()}};
    object = to_text(
        table(shape, JsonArray{row_of(shape, *event.item, now)}, std::move(metadata), first));
  } else {
    object = encode_item(shape, *event.item, now);
  }
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", event_type(event.kind), object);
}

std::string encode_bookmark(const Shape& shape, std::uint64_t version, bool initial_end) {
  JsonObject metadata{{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}};
  if (initial_end) metadata["annotations"] = JsonObject{{"k8s.io/initial-events-end", "true"}};
  Json object = JsonObject{{"kind", shape.resource->type.kind},
                           {"apiVersion", api_version(shape)},
                           {"metadata", metadata}};
  if (shape.kind == Shape::Kind::table) object = table(shape, {}, metadata, false);
  if (shape.kind == Shape::Kind::partial) object = partial(object);
  return fmt::format("{{\"type\":\"BOOKMARK\",\"object\":{}}}\n", to_text(object));
}

}  // namespace nvdra::sandbox
