// Daemons and their lists, as the tests of this folder speak of them.
#pragma once

#include "roles/common/names.hpp"
#include "roles/daemon/moves.hpp"

#include <string>
#include <vector>

namespace nvdra::roles::daemon::test {

inline const std::string domain_uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
inline const std::string clique_id = "11111111-2222-3333-4444-555555555555.7";

inline Self self(const std::string& node, const std::string& address) {
  return {.domain = DomainUid(domain_uid),
          .clique = CliqueId(clique_id),
          .node = NodeName(node),
          .address = address,
          .pod_name = "pod-" + node,
          .pod_uid = "uid-" + node,
          .pod_space = "nvdra"};
}

inline Place clique_place() {
  return {MemberList::clique_daemons,
          cliques(),
          {"nvdra", clique_object_name(DomainUid(domain_uid), CliqueId(clique_id))}};
}
inline Place domain_place() {
  return {MemberList::domain_nodes, compute_domains(), {"default", "d"}};
}

inline Json entry(const std::string& node, const std::string& address, std::int64_t index,
                  bool ready = false) {
  return member_entry({NodeName(node), address, CliqueId(clique_id), index, ready},
                      MemberList::clique_daemons);
}
inline Json node_entry(const std::string& node, const std::string& address, std::int64_t index,
                       bool ready = false) {
  return member_entry({NodeName(node), address, CliqueId(clique_id), index, ready},
                      MemberList::domain_nodes);
}

inline k8s::Object clique_with(const std::vector<Json>& entries,
                               const std::vector<std::string>& owners = {"uid-x"},
                               const std::string& domain = domain_uid) {
  JsonArray references;
  for (const std::string& uid : owners)
    references.push_back({{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "p"}, {"uid", uid}});
  return k8s::Object(Json{{"metadata",
                           {{"name", clique_place().key.name},
                            {"namespace", "nvdra"},
                            {"uid", "uid-clique"},
                            {"resourceVersion", "7"},
                            {"labels", {{domain_label, domain}, {clique_label, clique_id}}},
                            {"ownerReferences", references}}},
                          {"daemons", JsonArray(entries.begin(), entries.end())}});
}

inline k8s::Object domain_with(const std::vector<Json>& nodes, int number = 0,
                               const std::string& uid = domain_uid) {
  return k8s::Object(
      Json{{"metadata",
            {{"name", "d"}, {"namespace", "default"}, {"uid", uid}, {"resourceVersion", "7"}}},
           {"spec", {{"numNodes", number}}},
           {"status", {{"status", "NotReady"}, {"nodes", JsonArray(nodes.begin(), nodes.end())}}}});
}

}  // namespace nvdra::roles::daemon::test
