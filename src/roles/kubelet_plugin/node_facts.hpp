// What is known of this node's fabric, and why something is not known. Asking never ends the
// process: a node whose driver is missing, hanging or broken still unprepares, and its claims are
// told why.
#pragma once

#include "base/event.hpp"
#include "base/feature_gates.hpp"
#include "imex/fabric.hpp"
#include "imex/nvidia_smi.hpp"

#include <functional>
#include <optional>

namespace nvdra::roles::kubelet_plugin {

class NodeFacts {
public:
  // `news` is notified whenever the answer changes.
  NodeFacts(imex::DriverRoot root, const FeatureGates& gates, Time& time, Event& news);

  // Asks once now, at start (bounded by nvidia-smi's time limit).
  Async<void> refresh();
  // Asks every 10 s while the fabric is unknown, else every 10 min; until cancelled.
  Async<Result<void>> run();

  // Set once the GPUs have been asked: "" = this node is in no clique. An answer that cannot be had
  // later keeps the last one; a node that was in a clique never silently becomes one without.
  const std::optional<CliqueId>& clique() const { return clique_; }
  // Why clique() is unset or out of date, one sentence; "" when all is well.
  const std::string& trouble() const { return trouble_; }
  const std::vector<imex::Gpu>& gpus() const { return gpus_; }
  // Of the running driver, "" = not known (yet).
  std::string driver_version() const { return gpus_.empty() ? "" : gpus_.front().driver_version; }
  // Why this node's driver cannot serve driverManaged domains, one sentence; "" = it can
  // (node-side.md 3.6.4). Only with `check_driver`.
  const std::string& refusal() const { return refusal_; }
  // GPUs without clique on a node that has one (18.1 no. 23), one sentence; "" = none.
  const std::string& mixed() const { return mixed_; }
  // How often the clique has become another one, or has been lost, since start (18.1 no. 22).
  int clique_changes() const { return clique_changes_; }

  // Whether the driver must know host names: not in hostManaged, not without the gate for them.
  void check_driver(bool wanted) { check_driver_ = wanted; }
  // Told what the node's users should see: a reason in CamelCase and a sentence.
  using Tell = std::function<void(std::string reason, std::string message)>;
  void on_finding(Tell tell) { tell_ = std::move(tell); }

private:
  void take(const imex::Fabric& fabric);
  void take_loss();
  void take_mixed(const std::string& mixed);
  void judge_driver();
  Result<imex::Fabric> judge() const;

  imex::DriverRoot root_;
  const FeatureGates& gates_;
  Time& time_;
  Event& news_;
  std::optional<CliqueId> clique_;
  std::string trouble_ = "the GPUs have not been asked yet";
  std::vector<imex::Gpu> gpus_;
  bool check_driver_ = false;
  std::string refusal_;
  std::string judged_version_;
  std::string mixed_;
  int clique_changes_ = 0;
  bool lost_ = false;  // clique_ is the last one, the GPUs report none now
  Tell tell_;
};

// The sentence for refusal(), or "": the driver is too old for host names in the nodes file of
// nvidia-imex. Pure. A version that cannot be read is no reason to refuse.
std::string driver_refusal(const std::string& version);

}  // namespace nvdra::roles::kubelet_plugin
