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
// prepare(): read the claim and validate all of it, then write the intent; in driverManaged put the
// node label of a channel's domain; wait until the gate opens; make a daemon's directory; write the
// CDI file; write the completion. Everything before the intent leaves no trace. A crash between two
// steps leaves a state that the next prepare or unprepare finishes.
//
// Holding: a claim that is not ready is looked at again whenever the node's news say that something
// changed, at least once a second, until shortly before the deadline. After an answer with an error
// the kubelet asks again only when it next looks at the pod, 60 to 90 s later with its default
// syncFrequency; so a call is never answered with "not ready" earlier than it must be. Meanwhile
// the pods that the claim is reserved for are told the reason: after `tell_after`, and again when
// it changes, by the event that the kubelet would make of an answer
// (FailedPrepareDynamicResources).
//
// unprepare(): needs nothing but the checkpoint. A prepare of the same claim that is being held
// ends when it next looks. The node label goes with the last claim of its domain; while the API
// server is away the call waits for it. In hostManaged a label that driverManaged has left goes as
// well, and if it cannot, the claim does not wait.
#pragma once

#include "cdi/spec_dir.hpp"
#include "dra/checkpoint_store.hpp"
#include "dra/plugin.hpp"
#include "k8s/client.hpp"
#include "k8s/events.hpp"
#include "roles/kubelet_plugin/base_spec.hpp"
#include "roles/kubelet_plugin/devices.hpp"
#include "roles/kubelet_plugin/domain_directories.hpp"
#include "roles/kubelet_plugin/domains.hpp"
#include "roles/kubelet_plugin/gate.hpp"
#include "roles/kubelet_plugin/ledger.hpp"
#include "roles/kubelet_plugin/left_label.hpp"
#include "roles/kubelet_plugin/metrics.hpp"
#include "roles/kubelet_plugin/node_facts.hpp"
#include "roles/kubelet_plugin/node_label.hpp"
#include "roles/kubelet_plugin/turns.hpp"

#include <map>
#include <set>

namespace nvdra::roles::kubelet_plugin {

struct DriverConfig {
  ImexMode mode = ImexMode::host_managed;
  Roots roots;
  std::string resource_version = "v1";  // of resource.k8s.io
  NodeName node;
  // Where daemon claims may come from: the driver's own namespace first, then the additional ones.
  std::vector<std::string> namespaces;
  Duration tell_after = 3s;
  Duration ask_pods = 3s;
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
  Event& news;                           // of the node; the driver notifies it as well
  k8s::EventRecorder* events = nullptr;  // tells the pods of held claims; nullptr: nobody is told
  // driverManaged only, and there all of them.
  NodeLabel* label = nullptr;
  DomainDirectories* directories = nullptr;
  BaseSpec* base = nullptr;
  LeftLabel* left_label = nullptr;  // hostManaged only
};

class Driver final : public dra::Plugin {
public:
  Driver(DriverParts parts, DriverConfig config);

  Async<Result<dra::Prepared>> prepare(dra::ClaimRef claim, dra::Deadline deadline) override;
  Async<Result<void>> unprepare(dra::ClaimRef claim, dra::Deadline deadline) override;

  // driverManaged: puts the node label back if somebody took it off while a prepared claim of a
  // living domain needs it; without it the domain's daemon leaves its workload. Called after news.
  Async<void> keep_node();

  const AllChannels& all_channels() const { return all_channels_; }
  const NodeName& node() const { return config_.node; }

  void set_resource_version(std::string version) { config_.resource_version = std::move(version); }

private:
  // What one call knows of its claim; filled step by step, in rounds.
  struct Call {
    dra::ClaimRef claim;
    std::uint64_t epoch = 0;  // of the claim's unprepares, when the call began
    std::optional<Begin> wanted;
    std::map<DomainUid, DomainName> domains = {};
    DomainUid gate_domain = {};  // of the channel; empty: the claim waits for no gate
    bool begun = false;
    bool labelled = false;  // the node has been given to the claim's domain
    bool at_gate = false;   // all that is missing is the gate
    Instant begun_at = {};
    std::string told = {};
    Instant asked = {};  // when the pods were looked at
  };

  Async<Result<dra::Prepared>> hold(dra::ClaimRef claim, dra::Deadline deadline);
  using Answer = std::optional<Result<dra::Prepared>>;
  Async<Result<Answer>> rounds(Call* call, Instant until, bool to_gate);
  Async<Result<Answer>> rounds_beside_gate(Call* call, Instant until);
  void tell_pods(Call& call, const std::string& text);
  Async<bool> nobody_waits(Call& call);
  Async<void> pause(const Call& call, std::uint64_t seen, Duration limit);
  Async<Attempt<dra::Prepared>> round(Call& call);
  Async<std::optional<Trouble>> fetch(Call& call);
  Async<Attempt<Begun>> begin_once(Call& call);
  Async<std::optional<Trouble>> check_group(Call& call, const ConfigGroup& group);
  Async<std::optional<Trouble>> closed(Call& call);
  Async<std::optional<Trouble>> hold_node(Call& call, DomainUid domain);
  Result<void> make_daemons_ready(const std::vector<ConfigGroup>& groups);
  Result<std::optional<cdi::Spec>> wanted_spec(const ClaimUid& uid,
                                               const std::vector<ConfigGroup>& groups,
                                               const std::map<DomainUid, DomainName>& domains);
  Async<Attempt<dra::Prepared>> finish(const Call& call);
  Async<Attempt<dra::Prepared>> completed(dra::ClaimRef claim);
  Result<void> restore_file(const ClaimUid& uid, const dra::CheckpointClaim& entry);

  Async<Result<void>> undo(dra::ClaimRef claim, Instant until);
  Async<Result<void>> release_node(ClaimUid uid, DomainUid domain, Instant until);
  bool unprepared_since(const Call& call) const;
  bool with_fabric() const { return facts().clique() && !facts().clique()->empty(); }
  bool driver_managed() const { return config_.mode == ImexMode::driver_managed; }
  const NodeFacts& facts() const { return parts_.facts; }

  DriverParts parts_;
  DriverConfig config_;
  Turns turns_;
  AllChannels all_channels_;
  std::map<ClaimUid, std::uint64_t> unprepares_;  // while calls are running
  std::map<ClaimUid, int> running_;
  std::set<ClaimUid> leaving_;  // their unprepare has begun, and not succeeded yet
};

}  // namespace nvdra::roles::kubelet_plugin
