// Decisions on the checkpoint: may this claim be started, is it finished, what does undoing it
// mean. Pure (node-side.md 6.6, 6.9).
#pragma once

#include "roles/kubelet_plugin/allocation.hpp"

#include <chrono>
#include <map>
#include <optional>

namespace nvdra::roles::kubelet_plugin {

// Older PrepareAborted entries do not bind any more; also applied when deciding (18.1 no. 50). Nor
// do those that are as far in the future.
inline constexpr std::chrono::seconds aborted_lifetime{90};

struct Begin {
  dra::ClaimRef claim;
  Json status;  // of the claim, as now
  std::vector<ConfigGroup> groups;
};

enum class Begun {
  started,    // the entry says PrepareStarted now (or did already): go on
  completed,  // prepared before: answer from the entry
};

// Writes the intent into `checkpoint`, or says why not. Trouble (all retryable but the last):
//   * a device is held by another completed claim: `requested device <d> is already allocated to
//     different claim <uid>`; admin access on either side is not in the way;
//   * the channel is held: `channel <n> already allocated by claim <uid>`;
//   * the same claim version was given up: permanent, `claim prepare was already aborted`.
Attempt<Begun> begin(dra::Checkpoint& checkpoint, const Begin& wanted,
                     std::chrono::system_clock::time_point now);

// Writes the completion. Trouble (permanent) when the entry is not PrepareStarted any more, because
// Unprepare came in between.
std::optional<Trouble> complete(dra::Checkpoint& checkpoint, const dra::ClaimRef& claim,
                                std::vector<dra::DeviceGroup> groups);

enum class Undo {
  nothing,    // no entry, or given up before
  completed,  // take back, then remove the entry
  started,    // take back, then mark PrepareAborted
};
Undo undo_of(const dra::CheckpointClaim* entry);

// Entries whose lifetime as PrepareAborted is over.
std::vector<ClaimUid> expired(const dra::Checkpoint& checkpoint,
                              std::chrono::system_clock::time_point now);

// The claim other than `but` that holds channel `number` in a completed entry; empty if none.
ClaimUid channel_holder(const dra::Checkpoint& checkpoint, std::int64_t number,
                        const ClaimUid& but);

// The domain whose channel the entry holds or asks for; empty: none, or it cannot be read.
DomainUid channel_domain(const dra::CheckpointClaim& entry);

// Whether a claim other than `but` (empty: any) keeps this node working for `domain`: started or
// completed, with a channel of it.
bool needs_node(const dra::Checkpoint& checkpoint, const DomainUid& domain, const ClaimUid& but);

// The completed claims that hold a channel, each with its domain.
std::map<ClaimUid, DomainUid> channels_in_use(const dra::Checkpoint& checkpoint);

}  // namespace nvdra::roles::kubelet_plugin
