// The driver: prepares and unprepares claims on this node (node-side.md 6; dra/plugin.hpp says who
// calls and when).
//
// A claim's life in the checkpoint:
//
//   (none) ──begin──► PrepareStarted ──complete──► PrepareCompleted ──unprepare──► (none)
//                          │ unprepare
//                          ▼
//                     PrepareAborted ──90 s, or the claim has changed──► (none)
//
// prepare(): read the claim and validate all of it, then write the intent; wait until the gate
// opens; write the CDI file; write the completion. Everything before the intent leaves no trace. A
// crash between two steps leaves a state that the next prepare or unprepare finishes.
//
// Holding: a claim that is not ready is looked at again whenever the node's news say that something
// changed, at least once a second. The first call is answered with the reason after `first_hold`,
// so that the pod's event names it early; later calls are held until shortly before the deadline,
// so that recovery is seen at once.
//
// unprepare(): needs nothing but the checkpoint. A prepare of the same claim that is being held
// ends when it next looks.
#pragma once

#include "cdi/spec_dir.hpp"
#include "dra/checkpoint_store.hpp"
#include "dra/plugin.hpp"
#include "k8s/client.hpp"
#include "roles/kubelet_plugin/devices.hpp"
#include "roles/kubelet_plugin/domains.hpp"
#include "roles/kubelet_plugin/gate.hpp"
#include "roles/kubelet_plugin/ledger.hpp"
#include "roles/kubelet_plugin/metrics.hpp"
#include "roles/kubelet_plugin/node_facts.hpp"
#include "roles/kubelet_plugin/turns.hpp"

#include <map>

namespace nvdra::roles::kubelet_plugin {

struct DriverConfig {
  ImexMode mode = ImexMode::host_managed;
  Roots roots;
  std::string resource_version = "v1";  // of resource.k8s.io
  Duration first_hold = 3s;
  Duration look_again = 1s;
  Duration answer_margin = 500ms;  // before the deadline
};

// All of them outlive the driver.
struct DriverParts {
  asio::any_io_executor executor;
  Time& time;
  k8s::Client& client;
  dra::CheckpointStore& checkpoint;
  cdi::SpecDir& cdi;
  Domains& domains;
  NodeFacts& facts;
  Gate& gate;
  Metrics& metrics;
  Event& news;  // of the node; the driver notifies it as well
};

class Driver final : public dra::Plugin {
public:
  Driver(DriverParts parts, DriverConfig config);

  Async<Result<dra::Prepared>> prepare(dra::ClaimRef claim, dra::Deadline deadline) override;
  Async<Result<void>> unprepare(dra::ClaimRef claim, dra::Deadline deadline) override;

  void set_resource_version(std::string version) { config_.resource_version = std::move(version); }

private:
  // What one call knows of its claim; filled step by step, in rounds.
  struct Call {
    dra::ClaimRef claim;
    std::uint64_t epoch = 0;  // of the claim's unprepares, when the call began
    std::optional<Begin> wanted;
    bool begun = false;
    bool at_gate = false;  // all that is missing is the gate
  };

  Async<Result<dra::Prepared>> hold(dra::ClaimRef claim, dra::Deadline deadline);
  Async<void> pause(const Call& call, std::uint64_t seen, Duration limit);
  Async<Attempt<dra::Prepared>> round(Call& call);
  Async<std::optional<Trouble>> fetch(Call& call);
  Async<Attempt<Begun>> begin_once(Call& call);
  Async<std::optional<Trouble>> closed(const Call& call);
  Async<Attempt<dra::Prepared>> finish(const Call& call);
  Async<Attempt<dra::Prepared>> completed(dra::ClaimRef claim);
  Result<void> restore_file(const ClaimUid& uid, const dra::CheckpointClaim& entry);

  Async<Result<void>> undo(dra::ClaimRef claim);
  bool unprepared_since(const Call& call) const;
  bool with_edits() const { return facts().clique() && !facts().clique()->empty(); }
  const NodeFacts& facts() const { return parts_.facts; }

  DriverParts parts_;
  DriverConfig config_;
  Turns turns_;
  std::map<ClaimUid, int> held_before_;           // calls that ended without success
  std::map<ClaimUid, std::uint64_t> unprepares_;  // while calls are running
  std::map<ClaimUid, int> running_;
};

}  // namespace nvdra::roles::kubelet_plugin
