// The table of resources that the sandbox serves: built-in ones and those of CRDs.
#pragma once

#include "base/json.hpp"
#include "k8s/object.hpp"

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

// A column that `kubectl get` prints; `path` in the manner of a CRD's jsonPath (".status.status").
struct Column {
  std::string name;
  std::string type;  // string, integer, date, …
  std::string path;
  int priority = 0;  // above 0: only with -o wide
};

struct Resource {
  k8s::ResourceType type;  // its version is the one that is stored
  std::string singular;
  std::vector<std::string> short_names = {};
  std::vector<std::string> categories = {};
  std::vector<std::string> served = {};  // versions, preferred first
  bool has_status = false;               // status is a subresource
  bool has_generation = false;           // metadata.generation counts changes of the desired state
  bool needs_version = false;            // an update must name the resourceVersion it is based on
  bool listed = true;                    // supports the usual verbs; false: create only (reviews)
  std::vector<std::string> fields = {};  // field selectors besides metadata.name and .namespace
  std::vector<Column> columns = {};      // CRDs only
  std::shared_ptr<const Json> schema = {};  // CRDs only: openAPIV3Schema
  bool custom = false;                      // comes from a CRD

  std::string list_kind() const { return type.kind + "List"; }
  // "pods", "computedomains.resource.nvidia.com": how messages name it.
  std::string qualified() const {
    return type.group.empty() ? type.plural : type.plural + "." + type.group;
  }
};

// A resource keeps its address for ever, also when it is replaced; a removed one is only unlisted.
class Catalog {
public:
  // The built-in table. `resource_versions` are the served versions of resource.k8s.io.
  explicit Catalog(std::vector<std::string> resource_versions = {"v1"});

  // nullptr when there is none that serves this version ("" = any).
  const Resource* find(std::string_view group, std::string_view version,
                       std::string_view plural) const;
  const Resource* find_kind(std::string_view group, std::string_view kind) const;
  // For names known to exist, "pods" or "computedomains.resource.nvidia.com"; aborts otherwise.
  const Resource& at(std::string_view qualified) const;

  // Replaces the one of the same group and plural, in its place.
  const Resource& put(Resource resource);
  void remove(std::string_view group, std::string_view plural);

  const std::vector<const Resource*>& all() const { return listed_; }
  // group → its versions, preferred first; "" is the core group.
  std::vector<std::pair<std::string, std::vector<std::string>>> groups() const;

private:
  std::deque<Resource> kept_;
  std::vector<const Resource*> listed_;
};

}  // namespace nvdra::sandbox
