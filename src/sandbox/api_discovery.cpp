#include "sandbox/api_discovery.hpp"

#include "base/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

std::string group_version(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

JsonArray texts(const std::vector<std::string>& list) {
  return JsonArray(list.begin(), list.end());
}

JsonObject resource_entry(const Resource& resource, std::string_view subresource) {
  std::string name = resource.type.plural;
  if (!subresource.empty()) name += fmt::format("/{}", subresource);
  JsonArray verbs = {"create", "delete", "deletecollection", "get",
                     "list",   "patch",  "update",           "watch"};
  if (subresource == "status") verbs = {"get", "patch", "update"};
  if (subresource == "binding" || subresource == "eviction" || !resource.listed) verbs = {"create"};
  if (subresource == "log") verbs = {"get"};
  if (subresource == "exec") verbs = {"create", "get"};
  JsonObject entry{{"name", name},
                   {"singularName", subresource.empty() ? resource.singular : ""},
                   {"namespaced", resource.type.namespaced},
                   {"kind", resource.type.kind},
                   {"verbs", std::move(verbs)}};
  if (subresource.empty() && !resource.short_names.empty())
    entry["shortNames"] = texts(resource.short_names);
  if (subresource.empty() && !resource.categories.empty())
    entry["categories"] = texts(resource.categories);
  return entry;
}

// An empty answer means that there is no such version.
std::optional<Answer> resource_list(const Catalog& catalog, std::string_view group,
                                    std::string_view version) {
  JsonArray entries;
  for (const Resource* resource : catalog.all()) {
    if (resource->type.group != group) continue;
    if (std::ranges::find(resource->served, version) == resource->served.end()) continue;
    entries.push_back(resource_entry(*resource, ""));
    if (resource->has_status) entries.push_back(resource_entry(*resource, "status"));
    if (resource->type.plural == "pods" && group.empty())
      for (std::string_view subresource : {"binding", "eviction", "exec", "log"})
        entries.push_back(resource_entry(*resource, subresource));
  }
  if (entries.empty()) return std::nullopt;
  return Answer{200, to_text(JsonObject{{"kind", "APIResourceList"},
                                        {"apiVersion", "v1"},
                                        {"groupVersion", group_version(group, version)},
                                        {"resources", std::move(entries)}})};
}

JsonObject group_entry(const std::string& group, const std::vector<std::string>& versions) {
  JsonArray list;
  for (const std::string& version : versions)
    list.push_back(
        JsonObject{{"groupVersion", group_version(group, version)}, {"version", version}});
  return {{"name", group},
          {"versions", list},
          {"preferredVersion", list.empty() ? Json() : list.front()}};
}

Answer group_list(const Catalog& catalog) {
  JsonArray groups;
  for (const auto& [group, versions] : catalog.groups())
    if (!group.empty()) groups.push_back(group_entry(group, versions));
  return {200, to_text(JsonObject{
                   {"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}})};
}

std::optional<Answer> one_group(const Catalog& catalog, std::string_view name) {
  for (const auto& [group, versions] : catalog.groups()) {
    if (group != name || group.empty()) continue;
    JsonObject entry = group_entry(group, versions);
    entry["kind"] = "APIGroup";
    entry["apiVersion"] = "v1";
    return Answer{200, to_text(entry)};
  }
  return std::nullopt;
}

Answer version_answer(const std::string& version) {
  std::size_t first = version.find('.');
  std::size_t second = version.find('.', first + 1);
  return {200, to_text(JsonObject{{"major", version.substr(1, first - 1)},
                                  {"minor", version.substr(first + 1, second - first - 1)},
                                  {"gitVersion", version},
                                  {"gitCommit", ""},
                                  {"gitTreeState", "clean"},
                                  {"buildDate", "1970-01-01T00:00:00Z"},
                                  {"goVersion", ""},
                                  {"compiler", "clang"},
                                  {"platform", "linux/amd64"}})};
}

JsonArray patch_parameters() {
  JsonArray parameters;
  for (std::string_view name : {"dryRun", "fieldManager", "fieldValidation", "force"})
    parameters.push_back(
        JsonObject{{"name", name}, {"in", "query"}, {"schema", JsonObject{{"type", "string"}}}});
  return parameters;
}

std::optional<Answer> openapi_document(const Catalog& catalog, std::string_view group,
                                       std::string_view version) {
  JsonObject paths;
  for (const Resource* resource : catalog.all()) {
    if (resource->type.group != group) continue;
    if (std::ranges::find(resource->served, version) == resource->served.end()) continue;
    std::string path = fmt::format(
        "{}/{}/{}{}/{{name}}", group.empty() ? "/api" : "/apis", group_version(group, version),
        resource->type.namespaced ? "namespaces/{namespace}/" : "", resource->type.plural);
    Json kind = JsonObject{{"group", group}, {"version", version}, {"kind", resource->type.kind}};
    paths[path] = JsonObject{{"patch", JsonObject{{"parameters", patch_parameters()},
                                                  {"x-kubernetes-action", "patch"},
                                                  {"x-kubernetes-group-version-kind", kind},
                                                  {"responses", JsonObject{}}}}};
  }
  if (paths.empty()) return std::nullopt;
  return Answer{200, to_text(JsonObject{
                         {"openapi", "3.0.0"},
                         {"info", JsonObject{{"title", "nvdra-sandbox"}, {"version", version}}},
                         {"paths", std::move(paths)},
                         {"components", JsonObject{{"schemas", JsonObject{}}}}})};
}

}  // namespace

std::optional<Answer> answer_discovery(const Request& request, const Catalog& catalog,
                                       const std::string& server_version) {
  const auto& path = request.path;
  if (request.method != "GET") return std::nullopt;
  std::string text = request.path_text();
  if (text == "/healthz" || text == "/readyz" || text == "/livez")
    return Answer{200, "ok", "text/plain; charset=utf-8"};
  if (text == "/version") return version_answer(server_version);
  if (text == "/api")
    return Answer{200,
                  R"({"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[]})"};
  if (text == "/apis") return group_list(catalog);
  if (path.size() == 2 && path[0] == "api") return resource_list(catalog, "", path[1]);
  if (path.size() == 2 && path[0] == "apis") return one_group(catalog, path[1]);
  if (path.size() == 3 && path[0] == "apis") return resource_list(catalog, path[1], path[2]);
  return std::nullopt;
}

std::optional<Answer> answer_openapi(const Request& request, const Catalog& catalog) {
  const auto& path = request.path;
  if (request.method != "GET" || path.size() < 2 || path[0] != "openapi") return std::nullopt;
  if (path[1] == "v2")
    return Answer{
        200, to_text(JsonObject{{"swagger", "2.0"},
                                {"info", JsonObject{{"title", "nvdra-sandbox"}, {"version", "v1"}}},
                                {"paths", JsonObject{}}})};
  if (path[1] != "v3") return std::nullopt;
  if (path.size() == 4 && path[2] == "api") return openapi_document(catalog, "", path[3]);
  if (path.size() == 5) return openapi_document(catalog, path[3], path[4]);
  JsonObject paths;
  for (const auto& [group, versions] : catalog.groups())
    for (const std::string& version : versions) {
      std::string name =
          fmt::format("{}/{}", group.empty() ? "api" : "apis", group_version(group, version));
      paths[name] = JsonObject{{"serverRelativeURL", fmt::format("/openapi/v3/{}", name)}};
    }
  return Answer{200, to_text(JsonObject{{"paths", std::move(paths)}})};
}

}  // namespace nvdra::sandbox
