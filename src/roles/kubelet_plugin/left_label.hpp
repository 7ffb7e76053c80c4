// hostManaged on a node that has worked in driverManaged: the node label of a domain that is still
// there (node-side.md 18.1 no. 20). The domain's daemon stays on the node as long as it is.
//   * Told once at start, with the remedy: the controller removes it when the chart's value
//     resources.computeDomains.imex.cleanUpOtherMode is set.
//   * Removed here with the last claim of its domain. In this mode the plugin has the right to do
//     so only in some installations; what it may not do, it says, and the claim ends all the same.
// Of a node without such a label nothing is asked after the start.
#pragma once

#include "roles/kubelet_plugin/domains.hpp"
#include "roles/kubelet_plugin/node_label.hpp"

#include <functional>
#include <optional>

namespace nvdra::roles::kubelet_plugin {

class LeftLabel {
public:
  // A reason in CamelCase and a sentence, for the node's users.
  using Tell = std::function<void(std::string reason, std::string message)>;

  // `label` may be one that does not run(): it asks the server then. All of them outlive it.
  LeftLabel(NodeLabel& label, const Domains& domains, Time& time, NodeName node, Tell tell);

  // Looks at the node until the server has answered, tells what is there, and ends.
  Async<Result<void>> look();
  // One try within `limit`, unless the node is known to have no label of `domain`. Never fails: a
  // label that stays is logged. `needed`: see NodeLabel::remove().
  Async<void> release(DomainUid domain, std::function<bool()> needed, Duration limit);

private:
  NodeLabel& label_;
  const Domains& domains_;
  Time& time_;
  NodeName node_;
  Tell tell_;
  std::optional<DomainUid> holder_;  // unset: not known yet
};

}  // namespace nvdra::roles::kubelet_plugin
