#include "roles/kubelet_plugin/clique_label.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "roles/common/names.hpp"

namespace nvdra::roles::kubelet_plugin {
namespace {

Json metadata_patch(Json label, Json owner) {
  return {{"metadata",
           {{"labels", {{gpu_clique_label, std::move(label)}}},
            {"annotations", {{clique_owner_annotation, std::move(owner)}}}}}};
}

}  // namespace

std::optional<Json> clique_label_patch(const k8s::Object& node, bool enabled,
                                       const std::optional<CliqueId>& clique) {
  const Json* label = node.label(gpu_clique_label);
  bool ours = node.annotation_text(clique_owner_annotation) == driver_name;
  bool wanted = enabled && clique && !clique->empty();
  if (wanted) {
    if (ours && label && node.label_text(gpu_clique_label) == clique->value) return std::nullopt;
    return metadata_patch(Json(clique->value), Json(driver_name));
  }
  bool certain = !enabled || clique;
  if (ours && certain) return metadata_patch(nullptr, nullptr);
  return std::nullopt;
}

CliqueLabel::CliqueLabel(k8s::Client& client, Time& time, NodeFacts& facts, Event& news,
                         NodeName node, bool enabled)
    : client_(client),
      time_(time),
      facts_(facts),
      news_(news),
      node_(std::move(node)),
      enabled_(enabled) {}

Async<Result<void>> CliqueLabel::run() {
  for (;;) {
    std::optional<CliqueId> known = facts_.clique();
    Result<void> applied = co_await apply();
    Duration pause = 10min;
    if (!applied) {
      bool forbidden = applied.error().code == k8s::Errc::forbidden;
      // Without the switch there is normally nothing of ours to remove, and no right to look.
      if (!enabled_ && forbidden) co_return ok();
      LOG_WARNING("Cannot set the node label nvidia.com/gpu.clique, retrying",
                  {{"node", node_.value}, {"err", applied.error().text()}});
      pause = forbidden ? Duration(1min) : Duration(10s);
    } else if (!enabled_) {
      co_return ok();
    }
    Instant again = time_.now() + pause;
    // News come in bursts, and most of them are not about the clique.
    while (time_.now() < again && (!applied || facts_.clique() == known)) {
      // A time-out only means: look again.
      co_await news_.wait_for(time_, again - time_.now(), news_.count());
      if (!applied) break;
    }
    co_await time_.sleep(1s);
  }
}

Async<Result<void>> CliqueLabel::apply() {
  CO_TRY(k8s::Object node, co_await client_.get(nodes(), {"", node_.value}));
  std::optional<Json> patch = clique_label_patch(node, enabled_, facts_.clique());
  if (!patch) co_return ok();
  Result<k8s::Object> patched =
      co_await client_.patch(nodes(), {"", node_.value}, *std::move(patch));
  if (!patched) co_return std::move(patched).failure();
  LOG_INFO(1, "Set the node label nvidia.com/gpu.clique",
           {{"node", node_.value}, {"value", patched->label_text(gpu_clique_label)}});
  co_return ok();
}

}  // namespace nvdra::roles::kubelet_plugin
