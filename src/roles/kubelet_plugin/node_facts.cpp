#include "roles/kubelet_plugin/node_facts.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "imex/driver_version.hpp"
#include "imex/nvlink.hpp"

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr Duration while_unknown = 10s;
constexpr Duration when_known = 10min;

}  // namespace

NodeFacts::NodeFacts(imex::DriverRoot root, const FeatureGates& gates, Time& time, Event& news)
    : root_(std::move(root)), gates_(gates), time_(time), news_(news) {}

Result<imex::Fabric> NodeFacts::judge() const {
  if (!gates_.enabled("CrashOnNVLinkFabricErrors")) return imex::lenient_fabric(gpus_);
  auto unfinished = imex::Unfinished::is_an_error;
  if (gates_.enabled("FabricManagerPartitioning")) {
    TRY(bool alone, imex::single_node_nvlink(imex::dev_root(root_)));
    if (alone) unfinished = imex::Unfinished::is_no_clique;
  }
  return imex::strict_fabric(gpus_, unfinished);
}

Async<void> NodeFacts::refresh() {
  Result<std::vector<imex::Gpu>> asked = co_await imex::query_gpus(root_, time_);
  Result<imex::Fabric> fabric = imex::Fabric{};
  if (asked) {
    gpus_ = *std::move(asked);
    judge_driver();
    fabric = judge();
  } else {
    fabric = std::move(asked).failure();
  }
  if (fabric) {
    take(*fabric);
    co_return;
  }
  std::string why = fabric.error().text();
  if (why == trouble_) co_return;
  LOG_ERROR("Cannot tell this node's fabric clique, retrying", {{"err", why}});
  trouble_ = std::move(why);
  news_.notify();
}

void NodeFacts::take(const imex::Fabric& fabric) {
  bool first = !clique_.has_value();
  if (first)
    for (const std::string& note : fabric.notes) LOG_INFO(0, log::Plain{note});
  if (clique_ && !clique_->empty() && fabric.clique.empty()) return take_loss();
  lost_ = false;
  take_mixed(fabric.mixed);
  if (clique_ && *clique_ != fabric.clique) {
    LOG_WARNING("The fabric clique has changed",
                {{"before", clique_->value}, {"now", fabric.clique.value}});
    ++clique_changes_;
    if (tell_)
      tell_("FabricCliqueChanged",
            "this node was in clique " + (clique_->empty() ? "(none)" : clique_->value) +
                " and is in clique " + fabric.clique.value +
                " now: IMEX daemons that run here serve the former one; delete their pods, so that "
                "new ones join the node's clique");
  }
  bool changed = !clique_ || *clique_ != fabric.clique || !trouble_.empty();
  clique_ = fabric.clique;
  trouble_.clear();
  if (changed) news_.notify();
}

// Counted and told once, however often the GPUs cannot be asked meanwhile.
void NodeFacts::take_loss() {
  std::string why =
      "this node was in clique " + clique_->value +
      ", and its GPUs report no fabric now: check the fabric manager and nvidia-smi -q";
  if (!std::exchange(lost_, true)) {
    LOG_ERROR("The fabric clique has disappeared", {{"clique", clique_->value}});
    ++clique_changes_;
    if (tell_)
      tell_("FabricCliqueLost",
            why + "; until then its claims and IMEX daemons still count on the former clique");
  }
  if (why == trouble_) return;
  trouble_ = std::move(why);
  news_.notify();
}

void NodeFacts::take_mixed(const std::string& mixed) {
  if (mixed == mixed_) return;
  mixed_ = mixed;
  if (mixed.empty()) {
    LOG_INFO(0, log::Plain{"All GPUs of this node are in its fabric clique"});
    return;
  }
  LOG_WARNING(mixed);
  if (tell_) tell_("FabricMixed", mixed);
}

void NodeFacts::judge_driver() {
  std::string version = driver_version();
  if (!check_driver_ || version.empty() || version == judged_version_) return;
  judged_version_ = version;
  std::string before = std::exchange(refusal_, driver_refusal(version));
  if (refusal_.empty()) {
    LOG_INFO(0, log::Plain{"driver version validation passed: " + version});
  } else {
    LOG_ERROR("driver version validation failed", {{"version", version}, {"err", refusal_}});
    if (tell_) tell_("DriverTooOld", refusal_);
  }
  if (before != refusal_) news_.notify();
}

Async<Result<void>> NodeFacts::run() {
  for (;;) {
    co_await time_.sleep(trouble_.empty() ? when_known : while_unknown);
    co_await refresh();
  }
}

std::string driver_refusal(const std::string& version) {
  Result<imex::DriverVersion> own = imex::parse_driver_version(version);
  Result<imex::DriverVersion> oldest = imex::parse_driver_version(imex::host_names_since);
  if (!own || !oldest || *own >= *oldest) return {};
  return "the GPU driver of this node is " + version + ", and IMEX domains with DNS names need " +
         std::string(imex::host_names_since) +
         " or later: update the driver, or set featureGates.IMEXDaemonsWithDNSNames=false";
}

}  // namespace nvdra::roles::kubelet_plugin
