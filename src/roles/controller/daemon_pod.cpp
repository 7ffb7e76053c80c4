#include "roles/controller/daemon_pod.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::roles::controller {
namespace {

constexpr std::string_view last_applied = "kubectl.kubernetes.io/last-applied-configuration";

// Copies the fields that are there.
JsonObject some(const Json& from, std::initializer_list<std::string_view> keys) {
  JsonObject kept;
  for (std::string_view key : keys)
    if (const Json* value = get(from, key)) kept[key] = *value;
  return kept;
}

const Json& part(const Json& object, std::string_view path) {
  static const Json nothing = JsonObject{};
  const Json* found = find(object, path);
  return found && found->is_object() ? *found : nothing;
}

const Json& first(const JsonArray& list) {
  static const Json nothing = JsonObject{};
  return list.empty() ? nothing : list.front();
}

JsonObject identity(const Json& object) {
  return some(part(object, "metadata"),
              {"namespace", "name", "uid", "resourceVersion", "labels", "deletionTimestamp"});
}

JsonArray conditions(const Json& object, std::initializer_list<std::string_view> types) {
  JsonArray kept;
  for (const Json& condition : array_or_empty(object, "status/conditions"))
    if (std::ranges::find(types, text_or_empty(condition, "type")) != types.end())
      kept.push_back(
          some(condition, {"type", "status", "reason", "message", "lastTransitionTime"}));
  return kept;
}

const Json& condition(const Json& object, std::string_view type) {
  static const Json nothing = JsonObject{};
  for (const Json& each : array_or_empty(object, "status/conditions"))
    if (text_or_empty(each, "type") == type) return each;
  return nothing;
}

// A DaemonSet's pod names its node in an affinity term before it is scheduled.
std::string_view intended_node(const Json& pod) {
  constexpr std::string_view terms =
      "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
      "nodeSelectorTerms";
  for (const Json& term : array_or_empty(pod, terms))
    for (const Json& field : array_or_empty(term, "matchFields"))
      for (const Json& value : array_or_empty(field, "values"))
        if (text_or_empty(field, "key") == "metadata.name" && value.is_string())
          return value.get_string();
  return {};
}

std::string_view gates_of(const Json& pod) {
  for (const Json& container : array_or_empty(pod, "spec/containers"))
    for (const Json& variable : array_or_empty(container, "env"))
      if (text_or_empty(variable, "name") == "FEATURE_GATES")
        return text_or_empty(variable, "value");
  return {};
}

bool cannot_pull(std::string_view reason) {
  constexpr std::array<std::string_view, 5> reasons{"ErrImagePull", "ImagePullBackOff",
                                                    "InvalidImageName", "ErrImageNeverPull",
                                                    "ImageInspectError"};
  return std::ranges::find(reasons, reason) != reasons.end();
}

// The kubelet alternates between these states while a cause lasts; the words do not.
std::string container_trouble(const Json& status, bool ready) {
  std::string_view waiting = text_or_empty(status, "state/waiting/reason");
  if (cannot_pull(waiting))
    return fmt::format("cannot pull image {}{}", text_or_empty(status, "image"),
                       waiting.ends_with("ImageName") ? " (bad name)" : "");
  const Json& ended = find(status, "state/terminated") ? part(status, "state/terminated")
                                                       : part(status, "lastState/terminated");
  bool crashed = waiting == "CrashLoopBackOff" || find(status, "state/terminated") ||
                 (int_or(status, "restartCount", 0) > 0 && !ready);
  if (crashed) {
    std::string_view message = text_or_empty(ended, "message");
    return fmt::format("its container has ended with exit status {}{}{}",
                       int_or(ended, "exitCode", -1), message.empty() ? "" : ": ",
                       message.substr(0, 200));
  }
  if (waiting.empty() || waiting == "ContainerCreating" || waiting == "PodInitializing") return "";
  return fmt::format("{} {}", waiting, text_or_empty(status, "state/waiting/message"));
}

std::string trouble_of(const Json& pod, const DaemonPod& read) {
  if (read.phase == "Failed")
    return fmt::format("has failed: {} {}", text_or_empty(pod, "status/reason"),
                       text_or_empty(pod, "status/message"));
  const Json& scheduled = condition(pod, "PodScheduled");
  if (text_or_empty(scheduled, "status") == "False" &&
      text_or_empty(scheduled, "reason") == "Unschedulable")
    return fmt::format("cannot be scheduled: {}", text_or_empty(scheduled, "message"));
  return container_trouble(first(array_or_empty(pod, "status/containerStatuses")), read.ready);
}

}  // namespace

Json trim_metadata(const Json& object) {
  Json kept = object;
  if (!kept.is_object() || !find(kept, "metadata")) return kept;
  Json& metadata = kept.at("metadata");
  if (!metadata.is_object()) return kept;
  metadata.get_object().erase("managedFields");
  if (const Json* annotations = get(metadata, "annotations");
      annotations && annotations->is_object())
    metadata.at("annotations").get_object().erase(last_applied);
  return kept;
}

Json trim_pod(const Json& pod) {
  JsonObject metadata = identity(pod);
  JsonObject annotations;
  for (std::string_view name : {imex_state_annotation, address_annotation})
    if (const Json* said = get(part(pod, "metadata/annotations"), name)) annotations[name] = *said;
  metadata["annotations"] = std::move(annotations);
  JsonObject spec{{"nodeName", text_or_empty(pod, "spec/nodeName")}};
  if (spec["nodeName"].get_string().empty()) spec["nodeName"] = intended_node(pod);
  Json gates = {{"name", "FEATURE_GATES"}, {"value", gates_of(pod)}};
  spec["containers"] = JsonArray{JsonObject{{"env", JsonArray{gates}}}};
  JsonObject status = some(part(pod, "status"), {"phase", "podIP", "reason", "message"});
  status["conditions"] = conditions(pod, {"Ready", "PodScheduled"});
  const JsonArray& containers = array_or_empty(pod, "status/containerStatuses");
  if (!containers.empty())
    status["containerStatuses"] = JsonArray{
        some(containers.front(), {"image", "state", "lastState", "restartCount", "started"})};
  return JsonObject{{"metadata", std::move(metadata)}, {"spec", spec}, {"status", status}};
}

Json trim_node(const Json& node) {
  JsonObject metadata = identity(node);
  JsonObject labels;
  if (const Json* label = get(part(node, "metadata/labels"), domain_label))
    labels[domain_label] = *label;
  metadata["labels"] = std::move(labels);
  return JsonObject{{"metadata", std::move(metadata)},
                    {"status", {{"conditions", conditions(node, {"Ready"})}}}};
}

Json trim_template(const Json& claim_template) {
  if (get(part(claim_template, "metadata/labels"), domain_label))
    return trim_metadata(claim_template);
  return JsonObject{{"metadata", identity(claim_template)}};
}

Json trim_daemon_set(const Json& daemon_set) {
  Json kept = trim_metadata(daemon_set);
  if (!kept.is_object()) return kept;
  kept.get_object()["status"] =
      some(part(daemon_set, "status"), {"desiredNumberScheduled", "currentNumberScheduled"});
  return kept;
}

DaemonPod read_daemon_pod(const k8s::Object& object) {
  const Json& pod = object.json();
  DaemonPod read;
  read.key = object.key();
  read.node = NodeName(std::string(text_or_empty(pod, "spec/nodeName")));
  read.ip = text_or_empty(pod, "status/podIP");
  if (const Json* label = object.label(clique_label); label && label->is_string())
    read.clique = CliqueId(std::string(label->get_string()));
  read.deleting = object.deleting();
  read.phase = text_or_empty(pod, "status/phase");
  read.writes_cliques = gates_of(pod).find("ComputeDomainCliques=true") != std::string_view::npos;
  read.imex_state = object.annotation_text(imex_state_annotation);
  const Json& status = first(array_or_empty(pod, "status/containerStatuses"));
  const bool first_container = int_or(status, "restartCount", 0) == 0 &&
                               !find(status, "state/terminated") &&
                               object_or_empty(status, "lastState").empty();
  if (first_container) read.joins_with = object.annotation_text(address_annotation);
  const Json& ready = condition(pod, "Ready");
  read.ready = text_or_empty(ready, "status") == "True";
  std::string_view started = text_or_empty(status, "state/running/startedAt");
  read.running = find(status, "state/running") != nullptr;
  // Both times are the kubelet's, in whole seconds of UTC: they compare as texts.
  read.lost_ready = text_or_empty(ready, "status") == "False" && read.running &&
                    text_or_empty(ready, "lastTransitionTime") > started;
  read.trouble = trouble_of(pod, read);
  return read;
}

bool node_ready(const k8s::Object& node) {
  std::string_view status = text_or_empty(condition(node.json(), "Ready"), "status");
  return status.empty() || status == "True";
}

}  // namespace nvdra::roles::controller
