#include "roles/kubelet_plugin/served_cliques.hpp"

#include "cdi/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace nvdra::roles::kubelet_plugin {
namespace {

std::optional<std::string> value_of(const cdi::ContainerEdits& edits, std::string_view variable) {
  std::string beginning = std::string(variable) + "=";
  for (const std::string& each : edits.env)
    if (each.starts_with(beginning)) return each.substr(beginning.size());
  return std::nullopt;
}

bool is_prepared_daemon(const dra::CheckpointClaim& entry) {
  return entry.state == dra::ClaimState::completed &&
         std::ranges::any_of(entry.groups,
                             [](const auto& group) { return group.type == "daemon"; });
}

std::string named(const std::string& clique) {
  return clique.empty() ? "no clique" : "clique " + clique;
}

}  // namespace

std::vector<std::string> daemons_of_former_cliques(const dra::Checkpoint& checkpoint,
                                                   const cdi::SpecDir& cdi, const CliqueId& now) {
  std::vector<std::string> found;
  for (const auto& [uid, entry] : checkpoint.entries()) {
    if (!is_prepared_daemon(entry->claim)) continue;
    Result<cdi::Spec> spec = cdi.get(cdi::claim_file(uid));
    if (!spec) continue;
    for (const cdi::Device& device : spec->devices) {
      std::optional<std::string> clique = value_of(device.edits, "CLIQUE_ID");
      if (!clique || *clique == now.value) continue;
      found.push_back(fmt::format(
          "the IMEX daemon of ComputeDomain {}/{} on this node serves {}, and the node is in {} "
          "now: delete the daemon's pod (claim {}/{}), so that the next one joins the node's "
          "clique",
          value_of(device.edits, "COMPUTE_DOMAIN_NAMESPACE").value_or("?"),
          value_of(device.edits, "COMPUTE_DOMAIN_NAME").value_or("?"), named(*clique),
          named(now.value), entry->claim.space, entry->claim.name));
    }
  }
  return found;
}

}  // namespace nvdra::roles::kubelet_plugin
