// What is known of this node's fabric, and why something is not known. Asking never ends the
// process: a node whose driver is missing, hanging or broken still unprepares, and its claims are
// told why.
#pragma once

#include "base/event.hpp"
#include "base/feature_gates.hpp"
#include "imex/fabric.hpp"
#include "imex/nvidia_smi.hpp"

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

private:
  void take(const imex::Fabric& fabric);
  Result<imex::Fabric> judge() const;

  imex::DriverRoot root_;
  const FeatureGates& gates_;
  Time& time_;
  Event& news_;
  std::optional<CliqueId> clique_;
  std::string trouble_ = "the GPUs have not been asked yet";
  std::vector<imex::Gpu> gpus_;
};

}  // namespace nvdra::roles::kubelet_plugin
