#include "sandbox/kubelet_claims.hpp"

#include "base/try.hpp"
#include "sandbox/controllers_claims.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

bool reserved_for(const Json& claim, std::string_view pod_uid) {
  return std::ranges::any_of(array_or_empty(claim, "status/reservedFor"), [&](const Json& user) {
    return text_or_empty(user, "uid") == pod_uid;
  });
}

// "channel/sub" asks for any device of request "channel".
bool serves_request(const dra::PreparedDevice& device, std::string_view request) {
  return request.empty() || std::ranges::any_of(device.requests, [&](const std::string& name) {
           return std::string_view(name).substr(0, name.find('/')) == request;
         });
}

const dra::ClaimRef* ref_of(const std::vector<dra::ClaimRef>& claims, const std::string& uid) {
  const auto found =
      std::ranges::find(claims, uid, [](const dra::ClaimRef& claim) { return claim.uid.value; });
  return found == claims.end() ? nullptr : &*found;
}

// What is wrong with the answers to a call, if anything; `verb` is the RPC's name.
Result<void> check(const ClaimAnswers& answers, const std::vector<dra::ClaimRef>& asked,
                   std::string_view verb) {
  for (const auto& [uid, answer] : answers) {
    const dra::ClaimRef* claim = ref_of(asked, uid);
    if (!claim)
      return refuse(fmt::format("{} returned result for unknown claim UID {}", verb, uid));
    if (!answer.error.empty())
      return refuse(
          fmt::format("{} failed for ResourceClaim {}: {}", verb, claim->name, answer.error));
  }
  if (answers.size() < asked.size())
    return refuse(fmt::format("{} skipped {} ResourceClaims", verb, asked.size() - answers.size()));
  return ok();
}

}  // namespace

Result<NodeClaims::Claim> NodeClaims::look_up(const Item& pod, const std::string& name) const {
  const std::string space(pod.space());
  if (name.empty())
    return refuse(
        fmt::format("pod {}/{}: its ResourceClaim is not created yet", space, pod.name()));
  const ItemPtr claim = registry_.find(registry_.resource("resourceclaims"), {space, name});
  if (!claim)
    return refuse(fmt::format("failed to fetch ResourceClaim {} referenced by pod {}: not found",
                              name, pod.name()));
  if (!reserved_for(claim->json(), pod.uid()))
    return refuse(fmt::format("pod {} ({}) is not allowed to use ResourceClaim {} ({})", pod.name(),
                              pod.uid(), name, claim->uid()));
  Claim found{.ref = {space, name, ClaimUid(std::string(claim->uid()))},
              .drivers = {},
              .pods = {},
              .devices = {}};
  for (const Json& result : array_or_empty(claim->json(), "status/allocation/devices/results"))
    found.drivers.emplace(text_or_empty(result, "driver"));
  return found;
}

Result<const Driver*> NodeClaims::driver(const std::string& name) const {
  const Driver* found = plugins_.find(name);
  if (!found) return refuse(fmt::format("DRA driver {} is not registered", name));
  return found;
}

Async<Result<void>> NodeClaims::prepare(ItemPtr pod) {
  Batches batches;
  for (const std::string& name : claims_of(pod->json())) {
    Result<Claim> claim = look_up(*pod, name);
    if (!claim) co_return std::move(claim).failure().during("prepare dynamic resources");
    auto [entry, fresh] = claims_.try_emplace(claim->ref.uid.value, *claim);
    entry->second.pods.emplace(pod->uid());
    if (entry->second.prepared) continue;
    for (const std::string& driver : entry->second.drivers)
      batches[driver].push_back(entry->second.ref);
  }
  for (const auto& [driver, claims] : batches) {
    Result<void> prepared = co_await prepare_with(driver, claims);
    if (!prepared) co_return std::move(prepared).failure().during("prepare dynamic resources");
  }
  for (const auto& [driver, claims] : batches)
    for (const dra::ClaimRef& claim : claims)
      if (const auto entry = claims_.find(claim.uid.value); entry != claims_.end())
        entry->second.prepared = true;
  co_return ok();
}

Async<Result<void>> NodeClaims::prepare_with(std::string name, std::vector<dra::ClaimRef> claims) {
  CO_TRY(const Driver* found, driver(name));
  const std::shared_ptr<PluginChannel> channel = found->channel;
  Result<ClaimAnswers> answers = co_await channel->prepare(found->version, claims, limit_);
  if (!answers) co_return std::move(answers).failure().during("NodePrepareResources");
  CO_TRY_VOID(check(*answers, claims, "NodePrepareResources"));
  for (auto& [uid, answer] : *answers) {
    const auto entry = claims_.find(uid);
    if (entry == claims_.end()) continue;
    dra::Prepared& devices = entry->second.devices;
    devices.insert(devices.end(), answer.devices.begin(), answer.devices.end());
  }
  co_return ok();
}

Async<Result<void>> NodeClaims::unprepare(ItemPtr pod) {
  Batches batches;
  for (auto& [uid, claim] : claims_) {
    if (!claim.pods.contains(std::string(pod->uid())) || claim.pods.size() > 1) continue;
    for (const std::string& driver : claim.drivers) batches[driver].push_back(claim.ref);
  }
  for (const auto& [driver, claims] : batches) {
    Result<void> released = co_await unprepare_with(driver, claims);
    if (!released) co_return std::move(released).failure().during("unprepare dynamic resources");
  }
  for (auto& [uid, claim] : claims_) claim.pods.erase(std::string(pod->uid()));
  std::erase_if(claims_, [](const auto& one) { return one.second.pods.empty(); });
  co_return ok();
}

Async<Result<void>> NodeClaims::unprepare_with(std::string name,
                                               std::vector<dra::ClaimRef> claims) {
  CO_TRY(const Driver* found, driver(name));
  const std::shared_ptr<PluginChannel> channel = found->channel;
  Result<ClaimAnswers> answers = co_await channel->unprepare(found->version, claims, limit_);
  if (!answers) co_return std::move(answers).failure().during("NodeUnprepareResources");
  co_return check(*answers, claims, "NodeUnprepareResources");
}

std::vector<std::string> NodeClaims::cdi_devices(const Json& pod, const Json& container) const {
  const std::vector<std::string> names = claims_of(pod);
  const JsonArray& entries = array_or_empty(pod, "spec/resourceClaims");
  std::vector<std::string> found;
  for (const Json& wanted : array_or_empty(container, "resources/claims")) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (text_or_empty(entries[i], "name") != text_or_empty(wanted, "name")) continue;
      for (const auto& [uid, claim] : claims_) {
        if (claim.ref.name != names[i] ||
            claim.ref.space != text_or_empty(pod, "metadata/namespace"))
          continue;
        for (const dra::PreparedDevice& device : claim.devices)
          if (serves_request(device, text_or_empty(wanted, "request")))
            found.insert(found.end(), device.cdi_ids.begin(), device.cdi_ids.end());
      }
    }
  }
  return found;
}

}  // namespace nvdra::sandbox
