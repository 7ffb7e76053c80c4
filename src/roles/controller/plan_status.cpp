#include "roles/controller/plan_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::roles::controller {
namespace {

constexpr std::size_t most_named = 5;

Finding daemons(bool holds, std::string reason, std::string message, bool warning = false) {
  return {"DaemonsReady", holds, std::move(reason), std::move(message), warning};
}

// "node-a (pod x cannot pull image y), node-b (…) and 3 more". Those in trouble come first.
std::string named(std::vector<Waiting> waiting) {
  std::ranges::sort(waiting, [](const Waiting& a, const Waiting& b) {
    return a.trouble != b.trouble ? a.trouble : a.node < b.node;
  });
  std::vector<std::string> names;
  for (const Waiting& each : waiting) {
    if (names.size() == most_named) break;
    names.push_back(fmt::format("{} ({})", each.node.value, each.why));
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (waiting.size() > names.size())
    text += fmt::format(" and {} more", waiting.size() - names.size());
  return text;
}

}  // namespace

Finding judge_members(const Domain& domain, const Membership& members, const Settings& settings) {
  auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(domain.num_nodes, 0));
  if (!settings.dns_names && wanted == 0)
    return daemons(false, "NumNodesRequired",
                   "spec.numNodes is 0, but with the feature gate IMEXDaemonsWithDNSNames off the "
                   "daemons start only when exactly numNodes nodes have joined: create the "
                   "ComputeDomain again with its number of nodes, or switch the gate on",
                   true);
  bool trouble = std::ranges::any_of(members.waiting, &Waiting::trouble);
  if (!members.waiting.empty())
    return daemons(false, trouble ? "DaemonsFailing" : "WaitingForDaemons",
                   fmt::format("{} of {} daemons are ready; waiting for {}", members.ready,
                               std::max(members.known, wanted), named(members.waiting)),
                   trouble);
  if (members.nodes.size() < wanted)
    return daemons(
        false, "WaitingForNodes",
        fmt::format(
            "{} of {} nodes (spec.numNodes) have joined: a node joins when a pod "
            "with a channel claim of this domain is placed on it; those that are placed run "
            "meanwhile, and for fewer nodes the domain is made anew with numNodes 0",
            members.nodes.size(), wanted));
  if (members.nodes.empty())
    return daemons(true, "NoDaemonsNeeded",
                   "no node uses the domain: a daemon starts where a pod with a channel claim is "
                   "placed");
  return daemons(true, "DaemonsReady",
                 fmt::format("{} of {} daemons are ready", members.ready, members.known));
}

void add_oddities(const Membership& members, Plan& plan) {
  if (members.cliques.size() > 1) {
    std::vector<std::string> counts;
    counts.reserve(members.cliques.size());
    for (const auto& [clique, count] : members.cliques)
      counts.push_back(fmt::format("{}: {}", clique.value, count));
    plan.findings.push_back(
        {"SingleClique", false, "SeveralCliques",
         fmt::format("the domain's nodes are in {} NVLink cliques ({} nodes): memory is shared "
                     "inside a clique only; keep a job in one clique with an affinity to the node "
                     "label nvidia.com/gpu.clique",
                     members.cliques.size(), fmt::join(counts, ", "))});
  }
  if (!members.findings.empty())
    plan.findings.push_back({"MembersValid", false, "InvalidMembers",
                             fmt::format("{}", fmt::join(members.findings, "; ")), true});
}

}  // namespace nvdra::roles::controller
