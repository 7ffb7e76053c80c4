// The files of prepared claims: made, and made again when they were lost.
#include "base/log.hpp"
#include "base/try.hpp"
#include "cdi/names.hpp"
#include "roles/kubelet_plugin/driver.hpp"

#include <algorithm>

namespace nvdra::roles::kubelet_plugin {

// Prepared before: the same answer, and what it refers to is there (reports 16, 17).
Async<Attempt<dra::Prepared>> Driver::completed(dra::ClaimRef claim) {
  Turns::Turn turn = co_await turns_.take(claim.uid);
  const dra::CheckpointClaim* entry = parts_.checkpoint.current().find(claim.uid);
  if (!entry || entry->state != dra::ClaimState::completed)
    co_return retry("the claim was unprepared meanwhile");
  Result<void> restored = restore_file(claim.uid, *entry);
  if (!restored) co_return retry("cannot restore the CDI file: " + restored.error().text());
  co_return entry->prepared();
}

Result<void> Driver::restore_file(const ClaimUid& uid, const dra::CheckpointClaim& entry) {
  bool has_file = std::ranges::any_of(entry.prepared(), [&](const dra::PreparedDevice& device) {
    return std::ranges::find(device.cdi_ids, cdi::claim_device_id(uid, device.device)) !=
           device.cdi_ids.end();
  });
  if (!has_file) return ok();
  Attempt<std::vector<ConfigGroup>> read = read_allocation(entry.status, Decoding::lenient);
  // What an older release stored without its allocation cannot be made again.
  if (trouble_of(read)) return ok();
  const auto& groups = std::get<std::vector<ConfigGroup>>(read);
  TRY_VOID(make_daemons_ready(groups));

  std::map<DomainUid, DomainName> domains;
  for (const ConfigGroup& group : groups) {
    if (group.is_channel()) continue;
    k8s::ObjectPtr known = parts_.domains.cached(group.domain().value);
    // A file about a domain that is gone stays as it is.
    if (!known && parts_.cdi.get(cdi::claim_file(uid))) return ok();
    if (known) domains[group.domain()] = {std::string(known->space()), std::string(known->name())};
  }
  TRY(std::optional<cdi::Spec> wanted, wanted_spec(uid, groups, domains));
  if (!wanted || parts_.cdi.holds(cdi::claim_file(uid), *wanted)) return ok();
  LOG_INFO(0, "Restoring the CDI file of a prepared claim", {{"claim", uid.value}});
  return parts_.cdi.put(cdi::claim_file(uid), *wanted);
}

// What daemons find on the node: the driver's files, and their domain's directory.
Result<void> Driver::make_daemons_ready(const std::vector<ConfigGroup>& groups) {
  for (const ConfigGroup& group : groups) {
    if (group.is_channel() || !parts_.directories) continue;
    TRY_VOID(parts_.directories->prepare(group.domain()));
    TRY_VOID(parts_.base->refresh(facts().driver_version(), with_fabric()));
  }
  return ok();
}

// nullopt: no device needs a file.
Result<std::optional<cdi::Spec>> Driver::wanted_spec(
    const ClaimUid& uid, const std::vector<ConfigGroup>& groups,
    const std::map<DomainUid, DomainName>& domains) {
  ClaimSetting setting;
  if (facts().clique()) setting.clique = *facts().clique();
  setting.all_allowed = driver_managed();
  setting.domains = domains;
  if (parts_.directories) setting.domains_directory = parts_.directories->parent();
  TRY(cdi::Spec spec, claim_spec(uid, groups, config_.roots, setting, all_channels_));
  if (spec.devices.empty()) return std::optional<cdi::Spec>();
  return std::optional<cdi::Spec>(std::move(spec));
}

}  // namespace nvdra::roles::kubelet_plugin
