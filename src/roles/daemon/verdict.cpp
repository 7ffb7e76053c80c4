#include "roles/daemon/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nvdra::roles::daemon {
namespace {

std::string because(const std::string& trouble) {
  return trouble.empty() ? "" : ": " + trouble;
}

Verdict without_child(const Facts& facts) {
  if (facts.crashes == 0) return {false, "STARTING", "nvidia-imex is being started"};
  // The same words while it lasts: they end up in conditions and Events.
  const char* often = facts.crashes == 1 ? "has ended" : "keeps ending";
  return {false, "CRASHING",
          fmt::format("nvidia-imex {} ({}) and is started again after a pause{}", often,
                      facts.child_end, because(facts.child_trouble))};
}

const Member* peer_of(const imex::Unconnected& fault, const Circle& circle) {
  auto found = std::ranges::find(circle.members, fault.host, &Member::ip);
  if (found == circle.members.end())
    found = std::ranges::find(circle.members, fault.id, &Member::index);
  return found == circle.members.end() ? nullptr : &*found;
}

}  // namespace

std::string connection_trouble(const std::vector<imex::Unconnected>& faults, const Circle& circle) {
  std::vector<std::string> apart;
  std::vector<std::string> refused;
  for (const imex::Unconnected& fault : faults)
    if (const Member* peer = peer_of(fault, circle))
      (fault.refused() ? refused : apart)
          .push_back(fmt::format("{} ({})", peer->node.value, fault.word));
  if (!refused.empty())
    return fmt::format(
        "nvidia-imex refuses nvidia-imex of {} until one of them is restarted: it has another "
        "version or nodes file, as daemons of different releases have; bring all nodes of the "
        "domain to one release and one driver, then delete the daemons' pods",
        fmt::join(refused, ", "));
  if (apart.empty()) return {};
  return fmt::format(
      "nvidia-imex is READY but not connected with nvidia-imex of {}, which is READY too, so they "
      "cannot share memory: check that the daemons' pods reach each other's port 50000, then "
      "delete "
      "this pod",
      fmt::join(apart, ", "));
}

Verdict judge(const Facts& facts) {
  if (!facts.membership_trouble.empty()) return {false, "JOINING", facts.membership_trouble};
  if (!facts.files_trouble.empty()) return {false, "FILES", facts.files_trouble};
  if (!facts.index) return {false, "JOINING", "this node has no entry in the list of members yet"};
  if (facts.applied != facts.index)
    return {false, "FILES",
            fmt::format("index {} of this node is not in its files yet", *facts.index)};
  if (!facts.child_up) return without_child(facts);
  if (!facts.answer) return {false, "STARTING", "nvidia-imex has not been asked yet"};
  const imex::Answer& answer = *facts.answer;
  if (!answer.ready && answer.word.empty())
    return {false, "UNKNOWN", answer.trouble + because(facts.child_trouble)};
  if (!answer.ready)
    return {false, answer.word, "nvidia-imex says " + answer.word + because(facts.child_trouble)};
  if (facts.identified && facts.identified != facts.index)
    return {false, "WRONG_INDEX",
            fmt::format("nvidia-imex took itself for member {}, but this node has index {}",
                        *facts.identified, *facts.index)};
  if (!facts.unconnected.empty()) return {false, "UNCONNECTED", facts.unconnected};
  return {true, "READY", ""};
}

}  // namespace nvdra::roles::daemon
