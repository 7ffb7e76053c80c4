// Cliques, daemon pods and nodes as the caches hold them, for tests of membership.
#pragma once

#include "roles/controller/daemon_pod.hpp"
#include "roles/controller/world.hpp"

#include <map>
#include <optional>

namespace nvdra::roles::controller::test {

inline const std::string clique_a = "11111111-2222-3333-4444-555555555555.1";
inline const std::string clique_b = "11111111-2222-3333-4444-555555555555.2";
inline const std::string gates_on = "AllAlpha=false,ComputeDomainCliques=true,";
inline const std::string gates_off = "AllAlpha=false,ComputeDomainCliques=false,";

inline Member entry(std::string node, std::int64_t index, bool ready = true) {
  return {NodeName(node), "10.0.0." + std::to_string(index + 1), CliqueId(clique_a), index, ready};
}

inline k8s::ObjectPtr clique(std::vector<Member> members, std::string id = clique_a,
                             std::string space = "driver") {
  JsonArray daemons;
  for (Member& member : members) {
    member.clique = CliqueId(id);
    daemons.push_back(member_entry(member, MemberList::clique_daemons));
  }
  return object({{"metadata",
                  {{"namespace", space},
                   {"name", uid + "." + id},
                   {"uid", "clique " + id},
                   {"resourceVersion", "50"},
                   {"labels", {{domain_label, uid}, {clique_label, id}}}}},
                 {"daemons", daemons}});
}

struct PodShape {
  std::string node;
  std::optional<std::string> clique = clique_a;  // the label
  std::string ip = "10.0.0.1";
  bool ready = true;
  bool deleting = false;
  std::string gates = gates_on;
  std::string name = {};       // "" = "d-<node>"
  Json status = JsonObject{};  // merged over the status
  std::string space = "driver";
};

// As the server shows it, then trimmed.
inline k8s::ObjectPtr pod(PodShape shape) {
  JsonObject labels{{domain_label, uid}};
  if (shape.clique) labels[clique_label] = *shape.clique;
  std::string name = shape.name.empty() ? "d-" + shape.node : shape.name;
  JsonObject metadata{
      {"namespace", shape.space}, {"name", name},
      {"uid", "pod " + name},     {"resourceVersion", "60"},
      {"labels", labels},         {"managedFields", JsonArray{JsonObject{{"manager", "kubelet"}}}}};
  if (shape.deleting) metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  Json gates = {{"name", "FEATURE_GATES"}, {"value", shape.gates}};
  Json container = {{"image", "driver:1"},
                    {"state", {{"running", {{"startedAt", "2026-01-02T03:00:05Z"}}}}},
                    {"restartCount", 0}};
  Json ready = {{"type", "Ready"},
                {"status", shape.ready ? "True" : "False"},
                {"lastTransitionTime", "2026-01-02T03:00:01Z"}};
  Json status = {{"phase", "Running"},
                 {"podIP", shape.ip},
                 {"conditions", JsonArray{ready}},
                 {"containerStatuses", JsonArray{container}}};
  merge_patch(status, shape.status);
  return object(trim_pod({{"metadata", metadata},
                          {"spec",
                           {{"nodeName", shape.node},
                            {"containers", JsonArray{JsonObject{{"env", JsonArray{gates}}}}}}},
                          {"status", status}}));
}

inline k8s::ObjectPtr node(std::string name, std::string ready = "True") {
  Json condition = {{"type", "Ready"}, {"status", ready}};
  return object(trim_node({{"metadata",
                            {{"name", name},
                             {"uid", "node " + name},
                             {"resourceVersion", "70"},
                             {"labels", {{domain_label, uid}, {"zone", "a"}}}}},
                           {"status", {{"conditions", JsonArray{condition}}}}}));
}

// "a/0 ready, b/1", sorted as written.
inline std::string told(const std::vector<Member>& members) {
  std::string text;
  for (const Member& member : members)
    text += (text.empty() ? "" : ", ") + member.node.value + "/" + std::to_string(member.index) +
            (member.ready ? " ready" : "");
  return text;
}

}  // namespace nvdra::roles::controller::test
