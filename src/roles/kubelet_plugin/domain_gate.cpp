#include "roles/kubelet_plugin/domain_gate.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {
namespace {

// A new watch shows what there is at once; until then silence does not mean that there is nothing.
constexpr Duration first_events = 500ms;

}  // namespace

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
    sight.seen_turning = sight.member && follower->turned == sight.member->ip;
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
    k8s::ObjectKey key{config_.namespaces.front(), name};
    sight->source = "ComputeDomainClique " + key.text();
    Follower* follower = follower_of(domain);
    k8s::ObjectPtr clique;
    if (follower && follower->known && follower->clique_object == name) {
      clique = follower->clique;
      if (!clique && is_fresh(follower->watched_since)) co_return std::nullopt;
    } else if (follower && is_fresh(follower->since)) {
      co_return std::nullopt;  // its watch is being opened
    } else {
      Result<k8s::Object> read = co_await parts_.client.get(cliques(), key);
      if (!read && read.error().code != k8s::Errc::not_found)
        co_return retry("cannot tell whether the IMEX daemon is ready: " + read.error().text());
      if (read) clique = std::make_shared<const k8s::Object>(*std::move(read));
    }
    if (clique) {
      Members members = read_members(clique->json(), MemberList::clique_daemons);
      const Member* own = members.of(config_.node);
      if (own) sight->member = *own;
      co_return std::nullopt;
    }
  }
  k8s::ObjectPtr known = parts_.domains.cached(domain.value);
  if (!known) co_return std::nullopt;
  Members members = read_members(known->json(), MemberList::domain_nodes);
  const Member* own = members.of(config_.node);
  if (own) sight->member = *own;
  if (own || sight->source.empty()) sight->source = "the status of ComputeDomain " + sight->domain;
  co_return std::nullopt;
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

Async<Result<void>> DomainGate::follow(DomainUid domain) {
  auto entry = followers_.emplace(followers_.end(), Follower{domain, parts_.time.now(), {}});
  struct Leave {
    std::list<Follower>& followers;
    std::list<Follower>::iterator entry;
    ~Leave() { followers.erase(entry); }
  } leave{followers_, entry};

  Backoff backoff({500ms, 10s}, real_random());
  for (;;) {
    if (!watches_cliques()) {  // the ComputeDomains are watched anyway
      auto seen = parts_.news.count();
      co_await parts_.news.wait(seen);
      continue;
    }
    entry->clique_object = clique_object_name(domain, *parts_.facts.clique());
    Result<void> ended = co_await watch_once(&*entry);
    entry->known = false;
    entry->clique.reset();
    entry->turned.clear();
    if (ended) {
      backoff.reset();
      continue;
    }
    // Meanwhile closed() asks by itself.
    LOG_INFO(1, "Cannot watch a clique, trying again",
             {{"clique", entry->clique_object}, {"err", ended.error().text()}});
    co_await parts_.time.sleep(backoff.next(parts_.time.now()));
  }
}

// A watch without version shows what there is, and then every change.
Async<Result<void>> DomainGate::watch_once(Follower* follower) {
  k8s::WatchOptions options;
  options.field_selector = "metadata.name=" + follower->clique_object;
  CO_TRY(std::unique_ptr<k8s::Watch> watch,
         co_await parts_.client.watch(cliques(), config_.namespaces.front(), options));
  follower->known = true;
  follower->watched_since = parts_.time.now();
  for (;;) {
    Result<std::optional<k8s::WatchEvent>> next = co_await watch->next();
    if (!next && next.error().code == k8s::Errc::malformed_answer) continue;
    if (!next) co_return std::move(next).failure();
    if (!*next) co_return ok();
    apply(*follower, **next);
    bool other =
        !parts_.facts.clique() ||
        follower->clique_object != clique_object_name(follower->domain, *parts_.facts.clique());
    if (other) co_return ok();
  }
}

void DomainGate::apply(Follower& follower, const k8s::WatchEvent& event) {
  using Kind = k8s::WatchEvent::Kind;
  if (event.kind == Kind::bookmark || event.object.name() != follower.clique_object) return;
  k8s::ObjectPtr before = std::exchange(follower.clique, nullptr);
  if (event.kind != Kind::deleted)
    follower.clique = std::make_shared<const k8s::Object>(event.object);
  follower.turned = turned_ready(before, follower.clique, follower.turned);
  parts_.news.notify();
}

// What the watch shows first may be old; only a change that it shows is fresh.
std::string DomainGate::turned_ready(const k8s::ObjectPtr& before, const k8s::ObjectPtr& after,
                                     const std::string& turned) const {
  if (!before || !after) return {};
  Members old_members = read_members(before->json(), MemberList::clique_daemons);
  Members new_members = read_members(after->json(), MemberList::clique_daemons);
  const Member* was = old_members.of(config_.node);
  const Member* is = new_members.of(config_.node);
  if (!is || !is->ready) return {};
  bool turns = !was || !was->ready || was->ip != is->ip;
  return turns || turned == is->ip ? is->ip : std::string();
}

}  // namespace nvdra::roles::kubelet_plugin
