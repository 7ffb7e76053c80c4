#include "roles/controller/membership.hpp"

#include "roles/controller/daemon_pod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace nvdra::roles::controller {
namespace {

using Pods = std::vector<DaemonPod>;

Pods read_all(const std::vector<k8s::ObjectPtr>& objects) {
  Pods pods;
  pods.reserve(objects.size());
  for (const k8s::ObjectPtr& object : objects) pods.push_back(read_daemon_pod(*object));
  return pods;
}

bool backs(const DaemonPod& pod, const Member& member) {
  if (pod.node != member.node) return false;
  return !pod.clique || *pod.clique == member.clique;
}

// Whether a pod has written `member` into the ComputeDomain's status itself.
bool wrote(const DaemonPod& pod, const Member& member) {
  bool same_address = pod.ip.empty() || member.ip.empty() || pod.ip == member.ip;
  return !pod.writes_cliques && backs(pod, member) && same_address;
}

// Of two pods on one node the one that stays.
const DaemonPod* better(const DaemonPod* one, const DaemonPod* other) {
  if (!one) return other;
  return one->deleting && !other->deleting ? other : one;
}

class Assessment {
public:
  Assessment(const Seen& seen, std::int64_t max_nodes)
      : seen_(seen), max_nodes_(max_nodes), pods_(read_all(seen.pods)) {
    if (seen.live_pods) live_ = read_all(*seen.live_pods);
    for (const k8s::ObjectPtr& node : seen.nodes)
      node_ready_[NodeName(std::string(node->name()))] = controller::node_ready(*node);
  }

  Membership result() {
    for (const k8s::ObjectPtr& clique : seen_.cliques) add_clique(clique);
    add_written_by_daemons();
    add_without_fabric();
    std::ranges::sort(out_.nodes, [](const Member& a, const Member& b) {
      return std::tie(a.clique, a.index, a.node) < std::tie(b.clique, b.index, b.node);
    });
    add_expected();
    std::ranges::sort(out_.waiting, {}, &Waiting::node);
    out_.known = out_.nodes.size() + expected_;
    return std::move(out_);
  }

private:
  enum class Backing { there, doubtful, gone };

  template <class Backs>
  Backing backing(Backs&& does) const {
    if (std::ranges::any_of(pods_, does)) return Backing::there;
    if (!live_) return Backing::doubtful;
    return std::ranges::any_of(*live_, does) ? Backing::there : Backing::gone;
  }

  const DaemonPod* pod_of(const NodeName& node) const {
    const DaemonPod* best = nullptr;
    for (const DaemonPod& pod : pods_)
      if (pod.node == node) best = better(best, &pod);
    return best;
  }

  bool labelled(const NodeName& node) const { return node_ready_.contains(node); }
  bool leaving(const NodeName& node, const DaemonPod* pod) const {
    return !labelled(node) && (!pod || pod->deleting);
  }

  void add_clique(const k8s::ObjectPtr& object) {
    Members members = read_members(object->json(), MemberList::clique_daemons);
    std::string place = "ComputeDomainClique " + object->key().text();
    for (const std::string& finding : members.findings)
      out_.findings.push_back(fmt::format("{}: {}", place, finding));
    CliqueId clique = clique_of(*object);
    std::map<std::int64_t, NodeName> slots;
    Stale stale{object, {}};
    for (Member member : members.all) {
      if (!clique.empty()) member.clique = clique;
      Backing found = backing([&](const DaemonPod& pod) {
        return pod.key.space == object->space() && backs(pod, member);
      });
      if (found == Backing::doubtful) out_.doubtful = true;
      if (found == Backing::gone) {
        stale.members.push_back(std::move(member));
        continue;
      }
      auto [slot, free] = slots.emplace(member.index, member.node);
      if (!free)
        out_.findings.push_back(fmt::format("{}: {} and {} have the same index {}", place,
                                            slot->second.value, member.node.value, member.index));
      filled_[clique] += 1;
      add(member, true);
    }
    if (!stale.members.empty()) out_.stale.push_back(std::move(stale));
  }

  void add_written_by_daemons() {
    for (const Member& member : read_members(seen_.domain->json(), MemberList::domain_nodes).all) {
      if (member.clique.empty() || has(member.node)) continue;
      const DaemonPod* pod = pod_of(member.node);
      if (pod && pod->writes_cliques) continue;  // a copy of an entry that its clique has lost
      Backing found = backing([&](const DaemonPod& each) { return wrote(each, member); });
      if (found == Backing::doubtful) out_.doubtful = true;
      if (found != Backing::gone) add(member, false);
    }
  }

  void add_without_fabric() {
    std::set<NodeName> done;
    for (const DaemonPod& each : pods_) {
      if (!each.clique || !each.clique->empty() || each.node.empty() || each.ip.empty()) continue;
      const DaemonPod* pod = pod_of(each.node);
      if (pod != &each || leaving(each.node, pod) || has(each.node)) continue;
      add(Member{each.node, each.ip, {}, -1, each.ready}, true);
    }
  }

  bool has(const NodeName& node) const { return at_.contains(node); }

  // `ours`: the controller decides what the entry's status is.
  void add(Member member, bool ours) {
    const DaemonPod* pod = pod_of(member.node);
    auto [at, fresh] = at_.emplace(member.node, out_.nodes.size());
    if (!fresh) {
      Member& before = out_.nodes[at->second];
      bool mine = pod && pod->clique && *pod->clique == member.clique;
      if (!mine) return;
      forget(before);
      judge(member, pod, ours);
      before = std::move(member);
      return;
    }
    judge(member, pod, ours);
    out_.nodes.push_back(std::move(member));
  }

  void forget(const Member& member) {
    std::erase_if(out_.waiting, [&](const Waiting& each) { return each.node == member.node; });
    if (member.ready) --out_.ready;
    if (!member.clique.empty() && --out_.cliques[member.clique] == 0)
      out_.cliques.erase(member.clique);
  }

  void judge(Member& member, const DaemonPod* pod, bool ours) {
    if (!member.clique.empty()) out_.cliques[member.clique] += 1;
    bool ready = member.ready;
    if (!leaving(member.node, pod)) {
      Waiting waiting = why_not_ready(member, pod);
      ready = waiting.why.empty();
      if (!ready) out_.waiting.push_back(std::move(waiting));
    }
    if (ours) member.ready = ready;
    if (ready) ++out_.ready;
  }

  Waiting why_not_ready(const Member& member, const DaemonPod* pod) const {
    auto say = [&](std::string why, bool trouble) { return Waiting{member.node, why, trouble}; };
    auto node = node_ready_.find(member.node);
    if (node != node_ready_.end() && !node->second) return say("the node is not Ready", true);
    if (!pod) return say("it has no daemon pod", false);
    std::string name = "pod " + pod->key.text();
    if (pod->deleting) return say(name + " is being deleted", false);
    if (!pod->trouble.empty()) return say(name + ": " + pod->trouble, true);
    if (pod->lost_ready && pod->imex_state.empty())
      return say(name + " fails its readiness probe", true);
    const bool its_word = !pod->joins_with.empty() && pod->joins_with == member.ip;
    if (!pod->running && !pod->ready && !(member.ready && its_word))
      return say(name + " is " + pod->phase, false);
    if (member.ready && !pod->lost_ready) return {};
    std::string state = pod->imex_state.empty() ? "is not READY" : "is " + pod->imex_state;
    return say(fmt::format("nvidia-imex in {} {}", name, state), pod->lost_ready);
  }

  // Nodes that carry the label, and whose daemon has not joined.
  void add_expected() {
    for (const auto& [node, ready] : node_ready_) {
      if (has(node)) continue;
      ++expected_;
      out_.waiting.push_back(why_not_joined(node, ready));
    }
  }

  Waiting why_not_joined(const NodeName& node, bool ready) const {
    if (!ready) return {node, "the node is not Ready", true};
    const DaemonPod* pod = pod_of(node);
    if (!pod) return {node, "it has no daemon pod yet", false};
    std::string name = "pod " + pod->key.text();
    if (pod->deleting) return {node, name + " is being deleted", false};
    if (!pod->trouble.empty()) return {node, name + ": " + pod->trouble, true};
    auto filled = pod->clique ? filled_.find(*pod->clique) : filled_.end();
    if (filled != filled_.end() && filled->second >= max_nodes_)
      return {node,
              fmt::format("{} finds no free slot: clique {} has all its {} members", name,
                          pod->clique->value, max_nodes_),
              true};
    if (!pod->imex_state.empty())
      return {node, fmt::format("{} has not joined: {}", name, pod->imex_state), false};
    return {node, fmt::format("{} is {} and has not joined", name, pod->phase), false};
  }

  const Seen& seen_;
  std::int64_t max_nodes_;
  Pods pods_;
  std::optional<Pods> live_;
  std::map<NodeName, bool> node_ready_;
  std::map<NodeName, std::size_t> at_;  // → position in out_.nodes
  std::map<CliqueId, std::int64_t> filled_;
  std::size_t expected_ = 0;
  Membership out_;
};

}  // namespace

Membership assess(const Seen& seen, std::int64_t max_nodes) {
  return Assessment(seen, max_nodes).result();
}

}  // namespace nvdra::roles::controller
