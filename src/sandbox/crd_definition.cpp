#include "sandbox/crd_definition.hpp"

#include "base/try.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

Failure invalid(const Json& definition, std::string_view what) {
  return deny(Reason::invalid,
              fmt::format("CustomResourceDefinition.apiextensions.k8s.io \"{}\" is invalid: {}",
                          text_or_empty(definition, "metadata/name"), what));
}

std::vector<std::string> texts(const Json& object, std::string_view path) {
  std::vector<std::string> list;
  for (const Json& item : array_or_empty(object, path))
    if (item.is_string()) list.emplace_back(item.get_string());
  return list;
}

std::vector<Column> columns_of(const Json& version) {
  std::vector<Column> columns;
  for (const Json& column : array_or_empty(version, "additionalPrinterColumns"))
    columns.push_back({std::string(text_or_empty(column, "name")),
                       std::string(text_or_empty(column, "type")),
                       std::string(text_or_empty(column, "jsonPath")),
                       static_cast<int>(int_or(column, "priority", 0))});
  return columns;
}

JsonObject condition(std::string_view type, std::string_view reason, std::string_view message,
                     std::string_view now) {
  return {{"type", type},
          {"status", "True"},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", now}};
}

}  // namespace

Result<Resource> resource_of_crd(const Json& definition) {
  const Json* spec = get(definition, "spec");
  if (!spec) return invalid(definition, "spec: Required value");
  Resource resource;
  resource.custom = true;
  resource.needs_version = true;
  resource.has_generation = true;
  resource.type.group = text_or_empty(*spec, "group");
  resource.type.plural = text_or_empty(*spec, "names/plural");
  resource.type.kind = text_or_empty(*spec, "names/kind");
  resource.type.namespaced = text_or_empty(*spec, "scope") == "Namespaced";
  resource.singular = text_or_empty(*spec, "names/singular");
  resource.short_names = texts(*spec, "names/shortNames");
  resource.categories = texts(*spec, "names/categories");
  if (resource.type.plural.empty()) return invalid(definition, "spec.names.plural: Required value");
  if (resource.type.kind.empty()) return invalid(definition, "spec.names.kind: Required value");
  if (text_or_empty(definition, "metadata/name") !=
      fmt::format("{}.{}", resource.type.plural, resource.type.group))
    return invalid(definition, "metadata.name: must be spec.names.plural+\".\"+spec.group");

  for (const Json& version : array_or_empty(*spec, "versions")) {
    std::string name(text_or_empty(version, "name"));
    if (bool_or(version, "served", false)) resource.served.push_back(name);
    if (!bool_or(version, "storage", false)) continue;
    resource.type.version = name;
    resource.has_status = find(version, "subresources/status") != nullptr;
    resource.columns = columns_of(version);
    if (const Json* schema = find(version, "schema/openAPIV3Schema"))
      resource.schema = std::make_shared<Json>(*schema);
    for (const Json& field : array_or_empty(version, "selectableFields"))
      resource.fields.emplace_back(text_or_empty(field, "jsonPath").substr(1));
  }
  if (resource.type.version.empty())
    return invalid(definition,
                   "spec.versions: must have exactly one version marked as storage version");
  if (!resource.schema)
    return invalid(definition, "spec.versions[0].schema.openAPIV3Schema: Required value");
  if (resource.singular.empty())
    for (char c : resource.type.kind)
      resource.singular += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return resource;
}

Json established_status(const Json& definition, std::string_view now) {
  JsonObject names = object_or_empty(definition, "spec/names");
  JsonArray stored;
  for (const Json& version : array_or_empty(definition, "spec/versions"))
    if (bool_or(version, "storage", false)) stored.emplace_back(text_or_empty(version, "name"));
  return JsonObject{
      {"acceptedNames", std::move(names)},
      {"storedVersions", std::move(stored)},
      {"conditions", JsonArray{condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                               condition("Established", "InitialNamesAccepted",
                                         "the initial names have been accepted", now)}}};
}

}  // namespace nvdra::sandbox
