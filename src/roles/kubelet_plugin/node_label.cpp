#include "roles/kubelet_plugin/node_label.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "roles/common/clique.hpp"
#include "roles/common/names.hpp"
#include "roles/common/node_label.hpp"

#include <fmt/format.h>

namespace nvdra::roles::kubelet_plugin {
namespace {

constexpr int most_tries = 5;

const ClaimUid one_turn{"node label"};

}  // namespace

Json put_label_patch(const k8s::Object& node, const DomainUid& domain) {
  return {{"metadata",
           {{"resourceVersion", node.version()}, {"labels", {{domain_label, domain.value}}}}}};
}

NodeLabel::NodeLabel(asio::any_io_executor executor, k8s::Client& client, Time& time, NodeName node,
                     Event& news)
    : client_(client),
      name_(std::move(node)),
      informer_(executor, client, time, real_random(),
                {.type = nodes(), .field_selector = "metadata.name=" + name_.value}),
      turns_(executor) {
  informer_.store.on_change([&news](const k8s::ObjectPtr& before, const k8s::ObjectPtr& after) {
    DomainUid was = before ? domain_of(*before) : DomainUid();
    DomainUid is = after ? domain_of(*after) : DomainUid();
    if (was != is) news.notify();
  });
}

Async<Result<k8s::Object>> NodeLabel::node(bool fresh) {
  k8s::ObjectPtr known = informer_.store.get({"", name_.value});
  bool believed = known && informer_.store.ready() && informer_.trouble().empty();
  if (!fresh && believed) co_return *known;
  Result<k8s::Object> read = co_await client_.get(nodes(), {"", name_.value});
  co_return read;
}

Async<Result<DomainUid>> NodeLabel::holder() {
  CO_TRY(k8s::Object read, co_await node(false));
  co_return domain_of(read);
}

Async<Result<NodeLabel::Put>> NodeLabel::put(DomainUid domain) {
  Turns::Turn turn = co_await turns_.take(one_turn);
  for (int attempt = 0;; ++attempt) {
    CO_TRY(k8s::Object read, co_await node(attempt > 0));
    DomainUid holder = domain_of(read);
    if (holder == domain) co_return Put{};
    if (!holder.empty()) co_return Put{false, holder};
    Result<k8s::Object> patched =
        co_await client_.patch(nodes(), {"", name_.value}, put_label_patch(read, domain));
    if (patched) {
      LOG_INFO(1, "Put the node label of a ComputeDomain",
               {{"node", name_.value}, {"domain", domain.value}});
      informer_.store.note_written(*std::move(patched));
      co_return Put{true, {}};
    }
    bool changed = patched.error().code == k8s::Errc::conflict;
    if (!changed || attempt + 1 >= most_tries) co_return std::move(patched).failure();
  }
}

Async<Result<void>> NodeLabel::remove(DomainUid domain, std::function<bool()> needed) {
  Turns::Turn turn = co_await turns_.take(one_turn);
  if (needed()) co_return ok();
  Result<k8s::Object> read = co_await node(false);
  // A node that is gone has no label.
  if (!read && read.error().code == k8s::Errc::not_found) co_return ok();
  if (!read) co_return std::move(read).failure();
  if (domain_of(*read) != domain) co_return ok();
  Result<k8s::Object> patched = co_await client_.patch(
      nodes(), {"", name_.value}, remove_label_patch(domain), {.kind = k8s::PatchKind::json});
  if (patched) {
    LOG_INFO(1, "Removed the node label of a ComputeDomain",
             {{"node", name_.value}, {"domain", domain.value}});
    informer_.store.note_written(*std::move(patched));
    co_return ok();
  }
  auto code = patched.error().code;
  if (code == k8s::Errc::not_found) co_return ok();
  bool refused = code == k8s::Errc::conflict || code == k8s::Errc::invalid;
  if (!refused) co_return std::move(patched).failure();
  // Somebody else was faster: what counts is that it does not name this domain any more.
  CO_TRY(k8s::Object again, co_await node(true));
  if (domain_of(again) != domain) co_return ok();
  co_return std::move(patched).failure();
}

}  // namespace nvdra::roles::kubelet_plugin
