#include "roles/kubelet_plugin/left_label.hpp"

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "base/within.hpp"
#include "roles/common/names.hpp"

#include <fmt/format.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr Duration look_limit = 20s;
constexpr std::string_view remedy =
    "set the chart's value resources.computeDomains.imex.cleanUpOtherMode=true, and the controller "
    "removes what driverManaged has left behind";

}  // namespace

LeftLabel::LeftLabel(NodeLabel& label, const Domains& domains, Time& time, NodeName node, Tell tell)
    : label_(label),
      domains_(domains),
      time_(time),
      node_(std::move(node)),
      tell_(std::move(tell)) {}

Async<Result<void>> LeftLabel::look() {
  Backoff pauses({.first = 500ms, .cap = 10s}, real_random());
  for (;;) {
    Result<DomainUid> holder = co_await within(time_, look_limit, label_.holder());
    // A node that is gone has no label.
    if (!holder && holder.error().code == k8s::Errc::not_found) holder = DomainUid();
    if (holder) {
      holder_ = *std::move(holder);
      break;
    }
    LOG_INFO(1, "Cannot look at the labels of this node, trying again",
             {{"err", holder.error().text()}});
    co_await time_.sleep(pauses.next(time_.now()));
  }
  if (holder_->empty()) co_return ok();
  std::string text = fmt::format(
      "node {} still has the label {}={} of ComputeDomain {} from IMEX mode driverManaged, and "
      "that "
      "domain's daemon stays on it: {}",
      node_.value, domain_label, holder_->value, domains_.text_of(*holder_), remedy);
  LOG_WARNING(text);
  if (tell_) tell_("NodeLabelLeft", std::move(text));
  co_return ok();
}

Async<void> LeftLabel::release(DomainUid domain, std::function<bool()> needed, Duration limit) {
  if (domain.empty() || (holder_ && *holder_ != domain)) co_return;
  Result<void> removed = co_await within(time_, limit, label_.remove(domain, needed));
  if (removed) {
    if (holder_ && !needed()) holder_ = DomainUid();
    co_return;
  }
  LOG_WARNING(fmt::format("The label {}={} stays on node {} though no claim here needs it: {}",
                          domain_label, domain.value, node_.value, remedy),
              {{"err", removed.error().text()}});
}

}  // namespace nvdra::roles::kubelet_plugin
