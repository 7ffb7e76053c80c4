// What the controller keeps and reads of daemon pods and of nodes. Pure. The caches hold the
// trimmed objects only: a pod is some 20 kB as the server sends it.
#pragma once

#include "base/ids.hpp"
#include "k8s/object.hpp"

#include <optional>
#include <string>

namespace nvdra::roles::controller {

// Metadata without what nobody here reads (managedFields, the last applied manifest).
Json trim_metadata(const Json& object);
// Labels, node, address, phase, conditions Ready and PodScheduled, the container's state, the
// daemon's FEATURE_GATES, and what the daemon writes into annotations: address and state word.
Json trim_pod(const Json& pod);
// Labels and the condition Ready.
Json trim_node(const Json& node);
// A template without our label: only that its name is taken.
Json trim_template(const Json& claim_template);
// Without its status, but for the number of pods it wants.
Json trim_daemon_set(const Json& daemon_set);

// A daemon pod.
struct DaemonPod {
  k8s::ObjectKey key;
  NodeName node;  // where it runs, or the node that its DaemonSet made it for
  std::string ip;
  std::optional<CliqueId> clique;  // its label: none = not known yet, empty = no fabric there
  bool deleting = false;
  bool ready = false;    // condition Ready
  bool running = false;  // its container runs
  // It was ready since its container started, and is no longer: its readiness probe fails. Before
  // the first success the probe lags behind the daemon's own word and says nothing.
  bool lost_ready = false;
  // It writes its membership into a clique object (its own gate ComputeDomainCliques). Others write
  // it into the ComputeDomain's status.
  bool writes_cliques = false;
  // The address with which the daemon of its first container joins, as that daemon says; "" = not
  // said, or a later container.
  std::string joins_with;
  std::string phase;
  std::string imex_state;  // as the daemon says ("INITIALIZING"), "" = not said
  // What keeps it from running, in words that stay the same while it lasts: cannot be scheduled,
  // cannot pull its image, keeps crashing. "" = nothing known.
  std::string trouble;
};
DaemonPod read_daemon_pod(const k8s::Object& object);

// Whether the node's condition Ready is True. A node without the condition is ready.
bool node_ready(const k8s::Object& node);

}  // namespace nvdra::roles::controller
