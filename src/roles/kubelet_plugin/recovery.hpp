// What happens to the checkpoint at start: another boot, or a file that cannot be read
// (node-side.md 7.5, 18.1 no. 18, 26, 28; reports 5, 7, 17).
#pragma once

#include "k8s/events.hpp"
#include "roles/kubelet_plugin/driver.hpp"

namespace nvdra::roles::kubelet_plugin {

// Loads the checkpoint. A corrupt one is set aside under another name, and `set_aside` says which
// and why; the node goes on with an empty one. Entries of another boot are dropped and their CDI
// files removed; what else they had done is undone by the clean-up, or done again by the kubelet's
// next prepare (18.1 no. 18). Errors: the disk.
struct Loaded {
  std::string set_aside;             // "" or a sentence
  dra::Checkpoint::Entries dropped;  // of another boot
};
Async<Result<Loaded>> load_checkpoint(dra::CheckpointStore& checkpoint, cdi::SpecDir& cdi,
                                      std::string boot_id);

// After a checkpoint was set aside or lost: the claims that have a CDI file here, no entry, and are
// still allocated to this node are entered again as completed, with what the API server says of
// them: a pod uses them. Those that the server does not know any more are left to the clean-up.
// Asks the server only if there is such a file. Returns how many were entered.
Async<Result<std::size_t>> rebuild_checkpoint(DriverParts parts, NodeName node,
                                              std::string resource_version);

}  // namespace nvdra::roles::kubelet_plugin
