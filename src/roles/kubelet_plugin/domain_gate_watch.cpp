// The watches on a domain's clique, while a claim is held.
#include "base/backoff.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/domain_gate.hpp"

#include <boost/asio/this_coro.hpp>

namespace nvdra::roles::kubelet_plugin {

Async<Result<void>> DomainGate::follow(DomainUid domain) {
  auto entry = followers_.emplace(followers_.end(), Follower{domain, parts_.time.now(), {}});
  struct Leave {
    std::list<Follower>& followers;
    std::list<Follower>::iterator entry;
    ~Leave() { followers.erase(entry); }
  } leave{followers_, entry};
  for (const std::string& space : config_.namespaces) entry->places.push_back({space});

  TaskGroup watches(co_await asio::this_coro::executor);
  for (Place& place : entry->places)
    watches.spawn("watch the cliques of namespace " + place.space, follow_place(domain, &place));
  Result<void> ended = co_await watches.join();
  co_return ended;
}

Async<Result<void>> DomainGate::follow_place(DomainUid domain, Place* place) {
  Backoff backoff({500ms, 10s}, real_random());
  for (;;) {
    if (!watches_cliques()) {  // the ComputeDomains are watched anyway
      auto seen = parts_.news.count();
      co_await parts_.news.wait(seen);
      continue;
    }
    place->object = clique_object_name(domain, *parts_.facts.clique());
    Result<void> ended = co_await watch_once(domain, place);
    place->known = false;
    place->clique.reset();
    place->turned.clear();
    if (ended) {
      backoff.reset();
      continue;
    }
    // Meanwhile closed() asks by itself.
    LOG_INFO(1, "Cannot watch a clique, trying again",
             {{"clique", k8s::ObjectKey{place->space, place->object}.text()},
              {"err", ended.error().text()}});
    co_await parts_.time.sleep(backoff.next(parts_.time.now()));
  }
}

// A watch without version shows what there is, and then every change.
Async<Result<void>> DomainGate::watch_once(DomainUid domain, Place* place) {
  k8s::WatchOptions options;
  options.field_selector = "metadata.name=" + place->object;
  CO_TRY(std::unique_ptr<k8s::Watch> watch,
         co_await parts_.client.watch(cliques(), place->space, options));
  place->known = true;
  place->watched_since = parts_.time.now();
  for (;;) {
    Result<std::optional<k8s::WatchEvent>> next = co_await watch->next();
    if (!next && next.error().code == k8s::Errc::malformed_answer) continue;
    if (!next) co_return std::move(next).failure();
    if (!*next) co_return ok();
    apply(*place, **next);
    bool other = !parts_.facts.clique() ||
                 place->object != clique_object_name(domain, *parts_.facts.clique());
    if (other) co_return ok();
  }
}

void DomainGate::apply(Place& place, const k8s::WatchEvent& event) {
  using Kind = k8s::WatchEvent::Kind;
  if (event.kind == Kind::bookmark || event.object.name() != place.object) return;
  k8s::ObjectPtr before = std::exchange(place.clique, nullptr);
  if (event.kind != Kind::deleted) place.clique = std::make_shared<const k8s::Object>(event.object);
  place.turned = turned_ready(before, place.clique, place.turned);
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
