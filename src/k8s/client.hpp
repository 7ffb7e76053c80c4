// Typed calls to the API server. Pure protocol over a Transport; safe to use from many coroutines.
// Every error's text begins with what was asked ("get resourceclaims default/x: …").
// Retries inside a call: only 429 and 503 that carry Retry-After, while the call's limit allows.
// Tracing at -v 6 in the form `round_trippers.go` … `"Response" verb="GET" url=… status="200 OK"
// milliseconds=3` (node-side.md 14: tests grep for it).
#pragma once

#include "base/metrics.hpp"
#include "k8s/object.hpp"
#include "k8s/status.hpp"
#include "k8s/transport.hpp"
#include "k8s/watch.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nvdra::k8s {

struct ListOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};  // "" = consistent read, "0" = from the server's cache
  int page = 500;                     // items per request; all pages are fetched
};

struct ListAnswer {
  std::vector<Object> items;  // apiVersion and kind filled in
  std::string version;        // resourceVersion to watch from
};

enum class PatchKind { json, merge, apply };

struct PatchOptions {
  PatchKind kind = PatchKind::merge;
  std::string subresource = {};  // "status"
  std::string field_manager = "nvdra";
  bool force = false;  // of apply
};

struct DeleteOptions {
  std::string uid = {};               // precondition
  std::string resource_version = {};  // precondition
  std::string propagation = {};  // "Background", "Foreground", "Orphan", "" = the server's default
  std::optional<int> grace_seconds = {};
};

class Client {
public:
  // A call's default limit is 30 s. `transport` and `time` must outlive the client.
  Client(Transport& transport, Time& time);

  Async<Result<Object>> get(ResourceType type, ObjectKey key);
  Async<Result<ListAnswer>> list(ResourceType type, std::string space, ListOptions options = {});
  Async<Result<std::unique_ptr<Watch>>> watch(ResourceType type, std::string space,
                                              WatchOptions options);
  // metadata.name or metadata.generateName must be set in `object`.
  Async<Result<Object>> create(ResourceType type, std::string space, Json object);
  // The whole object; its metadata.resourceVersion is the guard. Only for Leases.
  Async<Result<Object>> update(ResourceType type, ObjectKey key, Json object, bool urgent = false);
  Async<Result<Object>> patch(ResourceType type, ObjectKey key, Json patch,
                              PatchOptions options = {});
  // The object as last seen by the server, or a Status; not_found is an error like any other.
  Async<Result<void>> remove(ResourceType type, ObjectKey key, DeleteOptions options = {});
  // Leases: over the transport's own connection for them.
  Async<Result<Object>> get_urgent(ResourceType type, ObjectKey key);
  Async<Result<Object>> create_urgent(ResourceType type, std::string space, Json object);

  // The versions that the server offers for an API group, preferred first. Empty if none.
  Async<Result<std::vector<std::string>>> group_versions(std::string group);
  // True if the server offers group/version/plural.
  Async<Result<bool>> serves(ResourceType type);
  // Any path, for /version, /readyz and the like.
  Async<Result<HttpAnswer>> raw(HttpRequest request);

  // Requests by verb and HTTP status, for metrics: ("GET", 200) → count; status 0: no answer.
  const std::map<std::pair<std::string, int>, std::uint64_t>& counts() const { return counts_; }
  // The same as rest_client_requests_total, the name that dashboards know.
  void add_counts(Metrics& metrics) const;

private:
  Async<Result<HttpAnswer>> exchange(HttpRequest request, std::string asked);  // any status
  Async<Result<HttpAnswer>> succeed(HttpRequest request, std::string asked);   // below 300
  Async<Result<Object>> one(ResourceType type, HttpRequest request, std::string asked);
  Async<Result<Object>> get_object(ResourceType type, ObjectKey key, bool urgent);
  Async<Result<Object>> create_object(ResourceType type, std::string space, Json object,
                                      bool urgent);
  Async<Result<ListAnswer>> list_pages(ResourceType type, std::string space, ListOptions options);
  Async<Result<Json>> document(std::string path);
  void note(const HttpRequest& request, int status, Instant began);

  Transport& transport_;
  Time& time_;
  std::map<std::pair<std::string, int>, std::uint64_t> counts_;
};

// The version of resource.k8s.io to use: v1, v1beta2 or v1beta1, the first that the server offers.
// The error names what is missing.
Async<Result<std::string>> discover_resource_version(Client& client);

// "/apis/apps/v1/namespaces/x/daemonsets/name"; the pieces are percent-encoded.
std::string path_of(const ResourceType& type, const std::string& space,
                    const std::string& name = {});

}  // namespace nvdra::k8s
