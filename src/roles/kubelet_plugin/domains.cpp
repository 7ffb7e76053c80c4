#include "roles/kubelet_plugin/domains.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

std::vector<std::string> own_uid(const k8s::Object& object) {
  return {std::string(object.uid())};
}

JsonObject metadata_of(const Json& domain) {
  JsonObject kept;
  const Json* metadata = get(domain, "metadata");
  if (!metadata || !metadata->is_object()) return kept;
  for (std::string_view key : {"namespace", "name", "uid", "resourceVersion", "deletionTimestamp"})
    if (const Json* value = get(*metadata, key)) kept[key] = *value;
  return kept;
}

// Of what is kept; namespace and name are those of the cache's entry.
bool is_news(const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
  if (!before || !after) return true;
  auto same = [&](std::string_view path) {
    const Json* old = find(before->json(), path);
    const Json* now = find(after->json(), path);
    return old && now ? *old == *now : old == now;
  };
  return !same("metadata/uid") || !same("metadata/deletionTimestamp") || !same("status");
}

Attempt<k8s::ObjectPtr> in_namespace(k8s::ObjectPtr domain, const std::string& space) {
  if (domain->space() == space) return domain;
  return permanent(
      fmt::format("claim namespace \"{}\" differs from the namespace \"{}\" of ComputeDomain {}: "
                  "create the claim "
                  "where the ComputeDomain is",
                  space, domain->space(), domain->name()));
}

}  // namespace

Json trim_domain(const Json& domain, const NodeName& node) {
  JsonArray nodes;
  for (const Json& entry : array_or_empty(domain, "status/nodes"))
    if (text_or_empty(entry, "name") == node.value) nodes.push_back(entry);
  Json kept{{"metadata", metadata_of(domain)}};
  if (!nodes.empty()) kept.as_object()["status"] = {{"nodes", std::move(nodes)}};
  return kept;
}

Domains::Domains(asio::any_io_executor executor, k8s::Client& client, Time& time, NodeName node)
    : client_(client), informer_(executor, client, time, real_random(), {compute_domains()}) {
  informer_.store.keep(
      [name = std::move(node)](const Json& domain) { return trim_domain(domain, name); });
  informer_.store.add_index("uid", own_uid);
}

void Domains::on_news(std::function<void()> tell) {
  informer_.store.on_change(
      [told = std::move(tell)](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
        if (is_news(before, after)) told();
      });
}

k8s::ObjectPtr Domains::cached(const std::string& uid) const {
  auto found = informer_.store.by_index("uid", uid);
  return found.empty() ? nullptr : found.front();
}

std::string Domains::text_of(const DomainUid& uid) const {
  k8s::ObjectPtr known = cached(uid.value);
  return known ? known->key().text() : uid.value;
}

Async<Attempt<k8s::ObjectPtr>> Domains::require(std::string uid, std::string space) {
  if (k8s::ObjectPtr known = cached(uid)) co_return in_namespace(known, space);
  Attempt<k8s::ObjectPtr> found = co_await look_up(std::move(uid), std::move(space));
  co_return found;
}

Async<Attempt<k8s::ObjectPtr>> Domains::require_anywhere(std::string uid) {
  if (k8s::ObjectPtr known = cached(uid)) co_return known;
  Attempt<k8s::ObjectPtr> found = co_await look_up(std::move(uid), "");
  co_return found;
}

// At the server; in every namespace if `space` is empty.
Async<Attempt<k8s::ObjectPtr>> Domains::look_up(std::string uid, std::string space) {
  if (!informer_.store.ready()) {
    std::string why = informer_.trouble();
    co_return retry("the ComputeDomains are not known yet: " + why);
  }
  Result<k8s::ListAnswer> listed = co_await client_.list(compute_domains(), space);
  if (!listed) co_return retry("cannot look up the ComputeDomain: " + listed.error().text());
  for (const k8s::Object& object : listed->items)
    if (object.uid() == uid) co_return std::make_shared<const k8s::Object>(object);
  if (space.empty())
    co_return permanent(
        fmt::format("ComputeDomain with UID {} was not found: it has been deleted", uid));
  co_return permanent(
      fmt::format("ComputeDomain with UID {} was not found in namespace \"{}\": it was deleted, or "
                  "the claim is in another namespace",
                  uid, space));
}

}  // namespace nvdra::roles::kubelet_plugin
