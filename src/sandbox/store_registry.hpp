// The stored world: every object of the sandbox's cluster, with the rules of the API server and
// without HTTP. Synchronous and in memory; used on one loop. The HTTP side is api_server.hpp, the
// controllers are controllers.hpp; both see changes through feed().
//
// Promises, as by the API server: one global resourceVersion counter; a write that changes nothing
// keeps the version; optimistic concurrency when a write names a version; generation; the status
// subresource; finalizers; graceful deletion of pods (the kubelet confirms with a grace of 0);
// defaults, pruning and checks of custom resources from their CRDs' schemas.
// Errors are store_error.hpp's.
#pragma once

#include "base/time.hpp"
#include "sandbox/store_feed.hpp"

#include <random>

namespace nvdra::sandbox {

struct WriteOptions {
  bool dry_run = false;
  bool strict = false;           // unknown fields of custom resources are refused
  std::string subresource = {};  // "" or "status"
  std::string manager = "unknown";
};

enum class PatchForm { json, merge, strategic, apply };

struct RemoveOptions {
  bool dry_run = false;
  std::string uid = {};          // precondition
  std::string version = {};      // precondition
  std::string propagation = {};  // Background, Foreground, Orphan; "" = Background
  std::optional<std::int64_t> grace = {};
};

// `gone`: the object has been removed; otherwise it waits for finalizers or its kubelet.
struct Removal {
  ItemPtr item;
  bool gone;
};

struct ListQuery {
  Filter filter = {};
  std::size_t limit = 0;  // 0 = all
  std::string continue_from = {};
};

struct Page {
  std::vector<ItemPtr> items;
  std::uint64_t version;
  std::string continue_from = {};  // "" = the last page
  std::size_t remaining = 0;
};

class Registry {
public:
  struct Options {
    std::vector<std::string> resource_versions = {"v1"};  // served versions of resource.k8s.io
    Feed::Bounds bounds = {};
  };

  // Begins with the namespaces default, kube-system, kube-public and kube-node-lease.
  explicit Registry(Time& time);
  Registry(Time& time, Options options);

  Catalog& catalog() { return catalog_; }
  const Resource& resource(std::string_view qualified) const { return catalog_.at(qualified); }
  Feed& feed() { return feed_; }
  Time& time() { return time_; }
  std::uint64_t version() const { return version_; }
  std::uint64_t random() { return random_(); }

  ItemPtr find(const Resource& resource, const ObjectKey& key) const;  // nullptr if absent
  Result<ItemPtr> get(const Resource& resource, const ObjectKey& key) const;
  Result<Page> list(const Resource& resource, const ListQuery& query) const;
  // All objects, or those of one namespace, in the order of their keys.
  std::vector<ItemPtr> all(const Resource& resource, std::string_view space = {}) const;

  Result<ItemPtr> create(const Resource& resource, const std::string& space, Json object,
                         const WriteOptions& options = {});
  Result<ItemPtr> update(const Resource& resource, const ObjectKey& key, Json object,
                         const WriteOptions& options = {});
  // An apply patch of a missing object creates it.
  Result<ItemPtr> patch(const Resource& resource, const ObjectKey& key, const Json& patch,
                        PatchForm form, const WriteOptions& options = {});
  Result<Removal> remove(const Resource& resource, const ObjectKey& key,
                         const RemoveOptions& options = {});
  // pods/binding: conflict if the pod has a node already.
  Result<ItemPtr> bind(const ObjectKey& pod, const std::string& node);
  // namespaces/finalize: takes "kubernetes" out of spec.finalizers; the namespace may go then.
  Result<void> finalize_space(const std::string& name);

  // Creates every CRD of the YAML files in the folder.
  Result<void> add_crds(const std::string& folder);

private:
  struct Place {
    const Resource& resource;
    ObjectKey key;
  };
  using Objects = std::map<ObjectKey, ItemPtr>;

  Result<void> check_space(const Resource& resource, const std::string& space) const;
  Result<std::vector<std::string>> conform(const Resource& resource, Json& object,
                                           const Json* before, const WriteOptions& options) const;
  Result<ItemPtr> write(const Place& place, const ItemPtr& before, Json object,
                        const WriteOptions& options);
  Result<ItemPtr> apply(const Place& place, const Json& patch, const WriteOptions& options);
  Result<void> check_preconditions(const Place& place, const Item& item,
                                   const RemoveOptions& options) const;
  Removal mark_deleted(const Place& place, const ItemPtr& item, std::int64_t grace,
                       const RemoveOptions& options);
  ItemPtr commit(const Place& place, const ItemPtr& before, Json object);
  ItemPtr erase(const Place& place, const ItemPtr& before);
  void definition_changed(const ItemPtr& before, const ItemPtr& after);

  Time& time_;
  Catalog catalog_;
  Feed feed_;
  std::map<const Resource*, Objects> objects_;
  std::map<std::string, Json> applied_;  // manager, uid → last apply patch
  std::uint64_t version_ = 0;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace nvdra::sandbox
