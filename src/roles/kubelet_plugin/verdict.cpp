#include "roles/kubelet_plugin/verdict.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {
namespace {

std::string waiting_reason(const Json& pod) {
  for (const char* list : {"status/initContainerStatuses", "status/containerStatuses"})
    for (const Json& container : array_or_empty(pod, list))
      if (std::string_view reason = text_or_empty(container, "state/waiting/reason");
          !reason.empty())
        return std::string(reason);
  for (const Json& condition : array_or_empty(pod, "status/conditions"))
    if (text_or_empty(condition, "type") == "PodScheduled" &&
        text_or_empty(condition, "status") == "False")
      return std::string(text_or_empty(condition, "reason"));
  return {};
}

std::string in_clique(const CliqueId& clique) {
  return clique.empty() ? std::string("without fabric clique") : "in clique " + clique.value;
}

const DaemonPod* living(const Sight& sight) {
  auto found = std::ranges::find(*sight.pods, false, &DaemonPod::deleting);
  return found == sight.pods->end() ? nullptr : &*found;
}

bool is_of_living_pod(const Member& member, const std::vector<DaemonPod>& pods, bool seen_turning) {
  if (member.ip.empty()) return false;
  bool matched = false, possible = false;
  for (const DaemonPod& pod : pods) {
    if (pod.deleting && pod.ip == member.ip) return false;
    matched |= pod.ip == member.ip;
    possible |= !pod.deleting && pod.ip.empty();
  }
  return matched || (seen_turning && possible);
}

// The part of the sentence that says what was seen and what to look at.
std::string seen(const Sight& sight) {
  const DaemonPod* pod = sight.pods ? living(sight) : nullptr;
  if (sight.pods && !pod)
    return sight.pods->empty()
               ? std::string(
                     "there is no daemon pod on this node yet: check the ComputeDomain's "
                     "conditions and its DaemonSet in the driver's namespace")
               : fmt::format(
                     "the former daemon pod {} is ending, and the next one has not come yet",
                     sight.pods->front().key.text());
  std::string name = pod ? fmt::format("daemon pod {}", pod->key.text()) : "its daemon";
  std::string logs =
      pod ? fmt::format(": check kubectl logs -n {} {}", pod->key.space, pod->key.name)
          : std::string();
  if (pod && pod->phase != "Running")
    return fmt::format("{} is {}{}: check kubectl describe pod -n {} {}", name,
                       pod->phase.empty() ? "Pending" : pod->phase,
                       pod->waits_for.empty() ? "" : " (" + pod->waits_for + ")", pod->key.space,
                       pod->key.name);
  if (pod && pod->clique && *pod->clique != sight.clique.value)
    return fmt::format(
        "{} serves clique \"{}\", but the node is {} now: delete that pod, so that the next one "
        "joins the node's clique",
        name, *pod->clique, in_clique(sight.clique));
  std::string state = pod && !pod->imex_state.empty() ? " (" + pod->imex_state + ")" : "";
  if (!sight.member)
    return fmt::format("{} has not joined {} yet{}{}", name, sight.source, state, logs);
  if (sight.member->clique != sight.clique)
    return fmt::format("the entry of this node in {} is of clique \"{}\"", sight.source,
                       sight.member->clique.value);
  if (sight.member->ready && sight.pods)
    return fmt::format("the entry of this node in {} is of a former daemon pod with address {}{}",
                       sight.source, sight.member->ip, logs);
  return fmt::format("{} is NotReady in {}{}{}", name, sight.source, state, logs);
}

}  // namespace

DaemonPod daemon_pod(const k8s::Object& pod) {
  DaemonPod read;
  read.key = pod.key();
  read.ip = text_or_empty(pod.json(), "status/podIP");
  read.phase = text_or_empty(pod.json(), "status/phase");
  read.deleting = pod.deleting();
  read.waits_for = waiting_reason(pod.json());
  const Json* state = pod.annotation(imex_state_annotation);
  if (state && state->is_string()) read.imex_state = std::string(state->get_string());
  const Json* clique = pod.label(clique_label);
  if (clique && clique->is_string()) read.clique = std::string(clique->get_string());
  return read;
}

Verdict judge(const Sight& sight) {
  bool says_ready = sight.member && sight.member->ready && sight.member->clique == sight.clique;
  if (says_ready && !sight.pods) return LookAtPods{};
  if (says_ready && is_of_living_pod(*sight.member, *sight.pods, sight.seen_turning)) return Open{};
  return Closed{fmt::format("the IMEX daemon of ComputeDomain {} on node {} ({}) is not ready: {}",
                            sight.domain, sight.node.value, in_clique(sight.clique), seen(sight))};
}

}  // namespace nvdra::roles::kubelet_plugin
