#include "roles/kubelet_plugin/recovery.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "cdi/names.hpp"
#include "roles/common/names.hpp"

#include <algorithm>
#include <set>

namespace nvdra::roles::kubelet_plugin {
namespace {

void remove_files(cdi::SpecDir& cdi, const dra::Checkpoint::Entries& dropped) {
  for (const auto& [uid, entry] : dropped) {
    Result<void> removed = cdi.remove(cdi::claim_file(uid));
    if (!removed) LOG_WARNING("Cannot remove a CDI file", {{"err", removed.error().text()}});
  }
}

bool allocated_here(const Json& status, const NodeName& node) {
  auto devices = dra::allocated_devices(status);
  return std::ranges::any_of(devices, [&](const dra::AllocatedDevice& device) {
    return device.driver == driver_name && device.pool == node.value;
  });
}

// The completed entry of a claim whose file is there; nothing if its content makes no sense.
std::optional<dra::CheckpointClaim> entry_of(const k8s::Object& claim) {
  const Json& status = *find(claim.json(), "status");
  Attempt<std::vector<ConfigGroup>> groups = read_allocation(status, Decoding::lenient);
  if (trouble_of(groups)) return std::nullopt;
  dra::CheckpointClaim entry;
  entry.state = dra::ClaimState::completed;
  entry.status = status;
  entry.name = claim.name();
  entry.space = claim.space();
  entry.groups = prepared_groups(ClaimUid(std::string(claim.uid())),
                                 std::get<std::vector<ConfigGroup>>(groups), true);
  return entry;
}

// Files of claims that the checkpoint does not know.
Result<std::set<std::string>> unknown_files(const DriverParts& parts) {
  TRY(std::vector<ClaimUid> files, parts.cdi.claims());
  std::set<std::string> unknown;
  for (const ClaimUid& uid : files)
    if (!parts.checkpoint.current().find(uid)) unknown.insert(uid.value);
  return unknown;
}

}  // namespace

Async<Result<Loaded>> load_checkpoint(dra::CheckpointStore& checkpoint, cdi::SpecDir& cdi,
                                      std::string boot_id) {
  Loaded loaded;
  Result<void> read = checkpoint.refresh();
  if (!read && read.error().code == dra::Errc::corrupt) {
    CO_TRY(std::string where, co_await checkpoint.set_aside());
    loaded.set_aside =
        read.error().text() + "; it is kept as " + where +
        ", and the claims of this node are read from the API server and the CDI files";
    LOG_ERROR("The checkpoint was set aside", {{"err", loaded.set_aside}});
  } else if (!read) {
    co_return std::move(read).failure();
  }
  dra::Adopted adopted{};
  Result<void> written = co_await checkpoint.update([&](dra::Checkpoint& current) {
    adopted = dra::adopt_boot_id(current, boot_id);
    return ok();
  });
  if (!written) co_return std::move(written).failure();
  loaded.dropped = std::move(adopted.dropped);
  if (adopted.boot == dra::Boot::other) {
    LOG_INFO(0, "The node has rebooted: the checkpoint is invalidated",
             {{"claims", loaded.dropped.size()}});
    remove_files(cdi, loaded.dropped);
  }
  co_return loaded;
}

Async<Result<std::size_t>> rebuild_checkpoint(DriverParts parts, NodeName node,
                                              std::string resource_version) {
  CO_TRY(std::set<std::string> wanted, unknown_files(parts));
  if (wanted.empty()) co_return std::size_t{0};

  CO_TRY(k8s::ListAnswer listed, co_await parts.client.list(claims(resource_version), ""));
  std::map<ClaimUid, dra::CheckpointClaim> entries;
  for (const k8s::Object& claim : listed.items) {
    const Json* status = find(claim.json(), "status");
    if (!wanted.contains(std::string(claim.uid())) || !status || !allocated_here(*status, node))
      continue;
    if (std::optional<dra::CheckpointClaim> entry = entry_of(claim))
      entries.emplace(ClaimUid(std::string(claim.uid())), *std::move(entry));
  }
  std::size_t entered = 0;
  Result<void> written =
      co_await parts.checkpoint.update([&](dra::Checkpoint& checkpoint) -> Result<void> {
        // Meanwhile the kubelet may have unprepared some.
        TRY(wanted, unknown_files(parts));
        for (const auto& [uid, entry] : entries) {
          if (!wanted.contains(uid.value) || checkpoint.find(uid)) continue;
          checkpoint.put(uid, entry);
          ++entered;
        }
        return ok();
      });
  if (!written) co_return std::move(written).failure();
  if (entered > 0)
    LOG_WARNING("Claims with a CDI file here were not in the checkpoint, they are entered again",
                {{"claims", entered}});
  co_return entered;
}

}  // namespace nvdra::roles::kubelet_plugin
