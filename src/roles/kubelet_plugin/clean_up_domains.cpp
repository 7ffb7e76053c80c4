// What domains leave on the node: the label and the directories.
#include "base/log.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"
#include "roles/kubelet_plugin/clean_up.hpp"

#include <algorithm>
#include <set>

namespace nvdra::roles::kubelet_plugin {
namespace {

bool refers_to(const dra::CheckpointClaim& entry, const DomainUid& domain) {
  bool named = std::ranges::any_of(
      entry.groups, [&](const dra::DeviceGroup& group) { return group.domain == domain; });
  return named || stored_domain(entry.status) == domain;
}

bool is_referred_to(const dra::Checkpoint& checkpoint, const DomainUid& domain) {
  return std::ranges::any_of(checkpoint.entries(), [&](const auto& each) {
    return each.second->claim.state != dra::ClaimState::aborted &&
           refers_to(each.second->claim, domain);
  });
}

}  // namespace

Async<void> CleanUp::release_label() {
  if (!parts_.label) co_return;
  Result<DomainUid> holder = co_await parts_.label->holder();
  if (!holder) {
    LOG_WARNING("Cannot look at the node label, will try again", {{"err", holder.error().text()}});
    co_return;
  }
  auto needed = [this, domain = *holder] {
    return needs_node(parts_.checkpoint.current(), domain, {});
  };
  if (holder->empty() || needed()) co_return;
  bool spared = co_await is_spared(*holder);
  spared_.clear();
  if (spared) co_return;
  Result<void> removed = co_await parts_.label->remove(*holder, needed);
  if (!removed)
    LOG_WARNING("Cannot remove a node label that no claim needs, will try again",
                {{"domain", holder->value}, {"err", removed.error().text()}});
}

Async<bool> CleanUp::is_spared(DomainUid holder) {
  dra::Checkpoint::Entries spared = spared_;
  for (const auto& [uid, entry] : spared) {
    const dra::CheckpointClaim& claim = entry->claim;
    if (claim.name.empty() || channel_domain(claim) != holder) continue;
    bool stale = co_await is_stale({claim.space, claim.name, uid}, false);
    if (!stale) co_return true;
  }
  co_return false;
}

// As far as can be told from here; nothing: it cannot be told at the moment.
std::optional<std::vector<DomainUid>> CleanUp::orphans() const {
  std::vector<DomainUid> found;
  if (!parts_.directories) return found;
  if (!parts_.domains.trouble().empty()) return std::nullopt;
  Result<std::vector<DomainUid>> all = parts_.directories->all();
  if (!all) {
    LOG_WARNING("Cannot list the directories of domains", {{"err", all.error().text()}});
    return std::nullopt;
  }
  for (DomainUid& domain : *all)
    if (!parts_.domains.cached(domain.value) &&
        !is_referred_to(parts_.checkpoint.current(), domain))
      found.push_back(std::move(domain));
  return found;
}

Async<Result<void>> CleanUp::drop_directories() {
  std::optional<std::vector<DomainUid>> candidates = orphans();
  if (!candidates || candidates->empty()) co_return ok();
  // A cache may lag behind; what is removed cannot be had back.
  CO_TRY(k8s::ListAnswer listed, co_await parts_.client.list(compute_domains(), ""));
  std::set<std::string, std::less<>> existing;
  for (const k8s::Object& domain : listed.items) existing.emplace(domain.uid());
  // The directory may be the last that knows of a label: it goes after it (report 38).
  CO_TRY(DomainUid holder, co_await parts_.label->holder());
  for (const DomainUid& domain : *candidates) {
    bool keep = existing.contains(domain.value) || domain == holder ||
                is_referred_to(parts_.checkpoint.current(), domain);
    if (keep) continue;
    CO_TRY_VOID(parts_.directories->remove(domain));
    LOG_INFO(1, "Removed the directory of a former domain", {{"domain", domain.value}});
  }
  co_return ok();
}

// A domain's directory goes soon after the domain and its last claim here; its label stays until
// then.
Async<Result<void>> CleanUp::watch_domains() {
  Backoff pauses({.first = pace_.settle, .cap = pace_.after_failure}, random_);
  for (;;) {
    auto seen = parts_.news.count();
    co_await driver_.keep_node();
    auto left = orphans();
    Result<void> dropped = ok();
    if (left && !left->empty()) {
      dropped = co_await drop_directories();
      if (!dropped) complain(dropped.error());
      left = orphans();
    }
    // That the domains can be told again is no news.
    const bool unfinished = !dropped || !left || !left->empty();
    if (!unfinished) pauses.reset();
    // Of what kept them there may be no news.
    const Duration pause = unfinished ? pauses.next(parts_.time.now()) : pace_.idle;
    co_await parts_.news.wait_for(parts_.time, pause, seen);
    co_await parts_.time.sleep(unfinished ? pace_.settle_after_failure : pace_.settle);
  }
}

void CleanUp::complain(const Error& error) {
  LOG_WARNING("Cannot remove the directories of former domains, will try again",
              {{"err", error.text()}});
}

}  // namespace nvdra::roles::kubelet_plugin
