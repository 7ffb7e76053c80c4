// Where a request goes.
#pragma once

#include "sandbox/api_faults.hpp"
#include "sandbox/api_http.hpp"
#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

// A request about objects: /api/v1/… or /apis/GROUP/VERSION/….
struct Route {
  const Resource* resource;
  std::string version;  // as asked
  std::string space = {};
  std::string name = {};
  std::string subresource = {};
  std::string verb = {};  // get, list, watch, create, update, patch, delete, deletecollection
};

// nullopt: not about objects, or about none that the catalog has.
std::optional<Route> route_of(const Request& request, const Catalog& catalog);

Asked asked_of(const Route& route, const Request& request);

}  // namespace nvdra::sandbox
