#include "roles/kubelet_plugin/domain_gate.hpp"

#include "base/try.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {
namespace {

// A new watch shows what there is at once; until then silence does not mean that there is nothing.
constexpr Duration first_events = 500ms;

std::string clique_text(const k8s::ObjectKey& key) {
  return "ComputeDomainClique " + key.text();
}

}  // namespace

k8s::ObjectPtr clique_for(const std::vector<k8s::ObjectPtr>& cliques, const NodeName& node) {
  auto names_node = [&](const k8s::ObjectPtr& clique) {
    return read_members(clique->json(), MemberList::clique_daemons).of(node) != nullptr;
  };
  auto best = std::ranges::max_element(cliques,
                                       [&](const k8s::ObjectPtr& one, const k8s::ObjectPtr& other) {
                                         const bool named = names_node(one);
                                         if (named != names_node(other)) return !named;
                                         return k8s::newer(other->version(), one->version());
                                       });
  return best == cliques.end() ? nullptr : *best;
}

DomainGate::DomainGate(Parts parts, DomainGateConfig config)
    : parts_(parts), config_(std::move(config)) {}

bool DomainGate::watches_cliques() const {
  return config_.cliques && parts_.facts.clique() && !parts_.facts.clique()->empty();
}

bool DomainGate::is_fresh(Instant since) const {
  return parts_.time.now() - since < first_events;
}

DomainGate::Follower* DomainGate::follower_of(const DomainUid& domain) {
  auto found = std::ranges::find(followers_, domain, &Follower::domain);
  return found == followers_.end() ? nullptr : &*found;
}

Async<Result<void>> DomainGate::wait_change(std::uint64_t seen) {
  co_await parts_.news.wait(seen);
  co_return ok();
}

Async<std::optional<Trouble>> DomainGate::closed(DomainUid domain) {
  if (!parts_.facts.clique())
    co_return retry("this node's fabric clique is not known: " + parts_.facts.trouble());
  Sight sight;
  sight.domain = parts_.domains.text_of(domain);
  sight.node = config_.node;
  sight.clique = *parts_.facts.clique();
  std::optional<Trouble> unknown = co_await find_member(domain, &sight);
  if (unknown) co_return unknown;

  if (const Follower* follower = follower_of(domain))
    sight.seen_turning =
        sight.member && std::ranges::find(follower->places, sight.member->ip, &Place::turned) !=
                            follower->places.end();
  Verdict verdict = judge(sight);
  if (std::holds_alternative<LookAtPods>(verdict)) {
    Result<std::vector<DaemonPod>> pods = co_await list_pods(domain);
    if (!pods) co_return retry("cannot look at the daemon's pod: " + pods.error().text());
    sight.pods = *std::move(pods);
    verdict = judge(sight);
  } else if (Follower* follower = follower_of(domain)) {
    std::optional<Trouble> trouble = co_await look_at_pods(follower, domain, &sight);
    if (trouble) co_return trouble;
    verdict = judge(sight);
  }
  if (const Closed* closed = std::get_if<Closed>(&verdict)) co_return retry(closed->text);
  co_return std::nullopt;
}

// Only for the words: who waits for long wants to know why.
Async<std::optional<Trouble>> DomainGate::look_at_pods(Follower* follower, DomainUid domain,
                                                       Sight* sight) {
  Instant now = parts_.time.now();
  if (now - follower->since < config_.explain_after) co_return std::nullopt;
  if (!follower->pods || now - follower->pods_seen >= config_.explain_every) {
    Result<std::vector<DaemonPod>> pods = co_await list_pods(domain);
    if (!pods) co_return retry("cannot look at the daemon's pod: " + pods.error().text());
    follower = follower_of(domain);
    if (!follower) co_return std::nullopt;
    follower->pods = *std::move(pods);
    follower->pods_seen = parts_.time.now();
  }
  sight->pods = follower->pods;
  co_return std::nullopt;
}

// Fills in where this node's entry stands, and the entry.
Async<std::optional<Trouble>> DomainGate::find_member(DomainUid domain, Sight* sight) {
  if (watches_cliques()) {
    std::string name = clique_object_name(domain, sight->clique);
    sight->source = clique_text({config_.namespaces.front(), name});
    std::vector<k8s::ObjectPtr> found;
    bool opening = false;
    std::optional<Trouble> unknown;
    for (const std::string& space : config_.namespaces) {
      Result<Seen> seen = co_await look(domain, {space, name});
      if (!seen) {
        unknown = retry("cannot tell whether the IMEX daemon is ready: " + seen.error().text());
        continue;
      }
      if (seen->clique) found.push_back(seen->clique);
      opening |= seen->opening;
    }
    k8s::ObjectPtr clique = clique_for(found, config_.node);
    if (clique) {
      sight->source = clique_text(clique->key());
      Members members = read_members(clique->json(), MemberList::clique_daemons);
      const Member* own = members.of(config_.node);
      if (own) {
        sight->member = *own;
        co_return std::nullopt;
      }
    }
    if (unknown || opening || clique) co_return unknown;
  }
  k8s::ObjectPtr known = parts_.domains.cached(domain.value);
  if (!known) co_return std::nullopt;
  Members members = read_members(known->json(), MemberList::domain_nodes);
  const Member* own = members.of(config_.node);
  if (own) sight->member = *own;
  if (own || sight->source.empty()) sight->source = "the status of ComputeDomain " + sight->domain;
  co_return std::nullopt;
}

// By the watch, if there is one that has shown what there is; else at the server.
Async<Result<DomainGate::Seen>> DomainGate::look(DomainUid domain, k8s::ObjectKey key) {
  if (const Follower* follower = follower_of(domain)) {
    auto place = std::ranges::find(follower->places, key.space, &Place::space);
    bool watched = place != follower->places.end() && place->known && place->object == key.name;
    bool fresh = is_fresh(watched ? place->watched_since : follower->since);
    if (watched && place->clique) co_return Seen{place->clique};
    if (fresh) co_return Seen{.opening = true};
    if (watched) co_return Seen{};
  }
  Result<k8s::Object> read = co_await parts_.client.get(cliques(), key);
  if (!read && read.error().code == k8s::Errc::not_found) co_return Seen{};
  if (!read) co_return std::move(read).failure();
  co_return Seen{std::make_shared<const k8s::Object>(*std::move(read))};
}

Async<Result<std::vector<DaemonPod>>> DomainGate::list_pods(DomainUid domain) {
  k8s::ListOptions options;
  options.label_selector = fmt::format("{}={}", domain_label, domain.value);
  options.field_selector = "spec.nodeName=" + config_.node.value;
  std::vector<DaemonPod> found;
  // Anybody may put the label onto a pod of his own namespace; those are not looked at.
  for (const std::string& space : config_.namespaces) {
    CO_TRY(k8s::ListAnswer listed, co_await parts_.client.list(pods(), space, options));
    for (const k8s::Object& pod : listed.items) found.push_back(daemon_pod(pod));
  }
  co_return found;
}

}  // namespace nvdra::roles::kubelet_plugin
