#include "sandbox/store_resource.hpp"

#include "sandbox/store_table.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace nvdra::sandbox {

Catalog::Catalog(std::vector<std::string> resource_versions) {
  for (Resource& resource : built_in_resources(resource_versions)) put(std::move(resource));
}

const Resource* Catalog::find(std::string_view group, std::string_view version,
                              std::string_view plural) const {
  for (const Resource* resource : listed_) {
    if (resource->type.group != group || resource->type.plural != plural) continue;
    if (version.empty() || std::ranges::find(resource->served, version) != resource->served.end())
      return resource;
  }
  return nullptr;
}

const Resource* Catalog::find_kind(std::string_view group, std::string_view kind) const {
  for (const Resource* resource : listed_)
    if (resource->type.group == group && resource->type.kind == kind) return resource;
  return nullptr;
}

const Resource& Catalog::at(std::string_view qualified) const {
  std::size_t dot = qualified.find('.');
  std::string_view plural = qualified.substr(0, dot);
  std::string_view group = dot == std::string_view::npos ? "" : qualified.substr(dot + 1);
  for (const Resource* resource : listed_)
    if (resource->type.plural == plural && (group.empty() || resource->type.group == group))
      return *resource;
  std::fprintf(stderr, "the sandbox has no resource %.*s\n", static_cast<int>(qualified.size()),
               qualified.data());
  std::abort();
}

const Resource& Catalog::put(Resource resource) {
  auto same = std::ranges::find_if(kept_, [&](const Resource& kept) {
    return kept.type.group == resource.type.group && kept.type.plural == resource.type.plural;
  });
  if (same == kept_.end()) same = kept_.insert(same, Resource{});
  *same = std::move(resource);
  if (std::ranges::find(listed_, &*same) == listed_.end()) listed_.push_back(&*same);
  return *same;
}

void Catalog::remove(std::string_view group, std::string_view plural) {
  std::erase_if(listed_, [&](const Resource* resource) {
    return resource->type.group == group && resource->type.plural == plural;
  });
}

std::vector<std::pair<std::string, std::vector<std::string>>> Catalog::groups() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const Resource* resource : listed_) {
    auto at =
        std::ranges::find(groups, resource->type.group, [](auto& group) { return group.first; });
    if (at == groups.end()) at = groups.insert(at, {resource->type.group, {}});
    for (const std::string& version : resource->served)
      if (std::ranges::find(at->second, version) == at->second.end()) at->second.push_back(version);
  }
  return groups;
}

}  // namespace nvdra::sandbox
