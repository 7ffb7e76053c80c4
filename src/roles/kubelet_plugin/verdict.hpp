// Is this node's IMEX daemon of a domain ready? The decision and its words; pure (node-side.md
// 6.8.1, 18.1 no. 6-9).
#pragma once

#include "roles/common/clique.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

// A pod of the domain's DaemonSet on this node.
struct DaemonPod {
  k8s::ObjectKey key;
  std::string ip;
  std::string phase;
  bool deleting = false;
  std::string waits_for;   // "ContainerCreating", "ImagePullBackOff", "Unschedulable", …
  std::string imex_state;  // what its daemon says of nvidia-imex ("INITIALIZING"); "" = nothing
  std::optional<std::string> clique;  // its label; nullopt: its daemon has not set it yet
};
DaemonPod daemon_pod(const k8s::Object& pod);

// What is known; the texts are for people.
struct Sight {
  std::string domain;  // "namespace/name"
  NodeName node;
  CliqueId clique;               // of the node; empty = no fabric
  std::string source;            // where the members stand: "ComputeDomainClique nvdra/…"
  std::optional<Member> member;  // this node's entry there
  bool seen_turning = false;     // the entry has become Ready while it was watched
  std::optional<std::vector<DaemonPod>> pods;  // nullopt: not looked at
};

struct Open {};
struct LookAtPods {};  // the entry says Ready; whose word it is cannot be told without the pods
struct Closed {
  std::string text;
};
using Verdict = std::variant<Open, LookAtPods, Closed>;

// Open: the entry says Ready, is of the node's clique, and has the address of a daemon pod that is
// here and not ending. An entry of a former pod does not count. The kubelet tells a pod's address
// late; a pod without one will do if the entry was seen turning Ready, which only a living daemon
// does.
Verdict judge(const Sight& sight);

}  // namespace nvdra::roles::kubelet_plugin
