#include "sandbox/api_route.hpp"

namespace nvdra::sandbox {
namespace {

std::string verb_of(const Request& request, bool named) {
  if (request.method == "GET") {
    bool watch = request.flag("watch");
    return watch ? "watch" : (named ? "get" : "list");
  }
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  if (request.method == "DELETE") return named ? "delete" : "deletecollection";
  return {};
}

}  // namespace

std::optional<Route> route_of(const Request& request, const Catalog& catalog) {
  const auto& path = request.path;
  std::string group;
  std::string version;
  std::size_t at = 0;
  if (path.size() >= 3 && path[0] == "api") {
    version = path[1];
    at = 2;
  } else if (path.size() >= 4 && path[0] == "apis") {
    group = path[1];
    version = path[2];
    at = 3;
  } else {
    return std::nullopt;
  }

  Route route{nullptr, version};
  // /namespaces/NAME/PLURAL is below a namespace; /namespaces/NAME/status is the namespace's.
  bool below_space = path.size() >= at + 3 && path[at] == "namespaces" &&
                     !(group.empty() && (path[at + 2] == "status" || path[at + 2] == "finalize"));
  if (below_space) {
    route.space = path[at + 1];
    at += 2;
  }
  route.resource = catalog.find(group, version, path[at]);
  if (!route.resource) return std::nullopt;
  if (below_space != route.resource->type.namespaced && below_space) return std::nullopt;
  if (path.size() > at + 3) return std::nullopt;
  if (path.size() > at + 1) route.name = path[at + 1];
  if (path.size() > at + 2) route.subresource = path[at + 2];
  route.verb = verb_of(request, !route.name.empty());
  if (route.verb.empty()) return std::nullopt;
  return route;
}

Asked asked_of(const Route& route, const Request& request) {
  return {route.verb,
          route.resource->type.plural,
          route.resource->type.group,
          route.subresource,
          route.space,
          route.name,
          request.header("user-agent")};
}

}  // namespace nvdra::sandbox
