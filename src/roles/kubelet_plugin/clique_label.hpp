// The node label nvidia.com/gpu.clique: exactly one owner (cluster-side.md 5.4, W-N3).
// Enabled: the label is written when it differs, and an annotation records that we own it. It stays
// when the plugin stops or restarts. It is removed, if the annotation says that it is ours, when
// the switch is turned off or when the GPUs say that this node has no fabric. Disabled and not
// ours: never touched.
#pragma once

#include "k8s/client.hpp"
#include "roles/kubelet_plugin/node_facts.hpp"

namespace nvdra::roles::kubelet_plugin {

inline constexpr std::string_view clique_owner_annotation = "resource.nvidia.com/gpu.clique-owner";

// The merge patch that brings a node's metadata in line, or nullopt. Pure. `clique` nullopt = not
// known: change nothing.
std::optional<Json> clique_label_patch(const k8s::Object& node, bool enabled,
                                       const std::optional<CliqueId>& clique);

class CliqueLabel {
public:
  CliqueLabel(k8s::Client& client, Time& time, NodeFacts& facts, Event& news, NodeName node,
              bool enabled);
  // Looks at start, at news, after failures and every 10 minutes; until cancelled.
  Async<Result<void>> run();

private:
  Async<Result<void>> apply();

  k8s::Client& client_;
  Time& time_;
  NodeFacts& facts_;
  Event& news_;
  NodeName node_;
  bool enabled_;
};

}  // namespace nvdra::roles::kubelet_plugin
