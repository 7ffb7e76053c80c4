// Objects and lists in the form that a request accepts: JSON, Table, or metadata only.
#pragma once

#include "sandbox/api_route.hpp"
#include "sandbox/store_registry.hpp"

namespace nvdra::sandbox {

struct Shape {
  enum class Kind { object, table, partial };
  Kind kind = Kind::object;
  std::string include = "Metadata";  // what a Table's rows hold: None, Metadata, Object
  const Resource* resource = nullptr;
  std::string version = {};  // of the API, as asked
};

Shape shape_of(const Request& request, const Route& route);

std::string encode_item(const Shape& shape, const Item& item, WallClock::time_point now);
std::string encode_page(const Shape& shape, const Page& page, WallClock::time_point now);
// `first`: a Table names its columns only in the first event of a watch.
std::string encode_event(const Shape& shape, const FeedEvent& event, WallClock::time_point now,
                         bool first);
std::string encode_bookmark(const Shape& shape, std::uint64_t version, bool initial_end);

}  // namespace nvdra::sandbox
