// driverManaged: the gate is this node's IMEX daemon of the domain, as it reports itself in the
// clique object (gate ComputeDomainCliques on) or in the ComputeDomain's status (node-side.md
// 6.8.1; 18.1 no. 6-9, 58; 18.3 no. 40).
//   * While a claim is held, one watch on the one clique object runs in each of the driver's
//     namespaces, for the domain's daemons may be in any of them; otherwise there is no traffic.
//   * The clique object is the newest word. Only where there is none, or the gate is off, or the
//     node has no fabric, the copy in the ComputeDomain's status counts.
//   * A Ready entry counts only with the address of a daemon pod that is here now. The pods are
//     looked at then, and now and then to explain why nothing happens.
#pragma once

#include "roles/kubelet_plugin/domains.hpp"
#include "roles/kubelet_plugin/gate.hpp"
#include "roles/kubelet_plugin/node_facts.hpp"
#include "roles/kubelet_plugin/verdict.hpp"

#include <list>

namespace nvdra::roles::kubelet_plugin {

struct DomainGateConfig {
  NodeName node;
  // Where daemons run and their cliques are: the driver's own namespace first, then the additional
  // ones.
  std::vector<std::string> namespaces;
  bool cliques = true;          // gate ComputeDomainCliques
  Duration explain_after = 2s;  // of waiting; then the pods are looked at for the reason
  Duration explain_every = 3s;
};

// Which of a domain's cliques, found in several namespaces, tells of `node`: one that has an entry
// of it before one that has none, and then the one that was written last, for a clique that the
// domain's former daemons have left behind is written no more. nullptr: none. Pure.
k8s::ObjectPtr clique_for(const std::vector<k8s::ObjectPtr>& cliques, const NodeName& node);

class DomainGate final : public Gate {
public:
  // All of them outlive it.
  struct Parts {
    k8s::Client& client;
    Time& time;
    Domains& domains;
    NodeFacts& facts;
    Event& news;
  };
  DomainGate(Parts parts, DomainGateConfig config);

  Async<std::optional<Trouble>> closed(DomainUid domain) override;
  Async<Result<void>> wait_change(std::uint64_t seen) override;
  bool follows() const override { return true; }
  Async<Result<void>> follow(DomainUid domain) override;

private:
  // Where a clique is watched.
  struct Place {
    std::string space;
    std::string object = {};  // the clique's name; "" = not watched
    bool known = false;       // a watch stands: `clique` is what it has shown
    Instant watched_since = {};
    k8s::ObjectPtr clique = {};
    std::string turned = {};  // the address with which this node's entry has become Ready meanwhile
  };
  // One claim that is held.
  struct Follower {
    DomainUid domain;
    Instant since;
    std::vector<Place> places;  // one for each namespace
    std::optional<std::vector<DaemonPod>> pods = {};
    Instant pods_seen = {};
  };
  struct Seen {
    k8s::ObjectPtr clique = {};  // nullptr: there is none, or `opening`
    bool opening = false;        // a watch is being opened: it is not known yet
  };
  Follower* follower_of(const DomainUid& domain);
  bool watches_cliques() const;
  bool is_fresh(Instant since) const;
  Async<Result<void>> follow_place(DomainUid domain, Place* place);
  Async<Result<void>> watch_once(DomainUid domain, Place* place);
  void apply(Place& place, const k8s::WatchEvent& event);
  std::string turned_ready(const k8s::ObjectPtr& before, const k8s::ObjectPtr& after,
                           const std::string& turned) const;
  Async<Result<Seen>> look(DomainUid domain, k8s::ObjectKey key);
  Async<std::optional<Trouble>> find_member(DomainUid domain, Sight* sight);
  Async<Result<std::vector<DaemonPod>>> list_pods(DomainUid domain);
  Async<std::optional<Trouble>> look_at_pods(Follower* follower, DomainUid domain, Sight* sight);

  Parts parts_;
  DomainGateConfig config_;
  std::list<Follower> followers_;
};

}  // namespace nvdra::roles::kubelet_plugin
