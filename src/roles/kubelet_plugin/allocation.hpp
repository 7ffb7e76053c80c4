// A claim's allocation → which of our devices get which config. Pure; everything that can be wrong
// with a claim's content is found here, before anything is written (node-side.md 6.7, 18.1 no. 25,
// 33).
#pragma once

#include "dra/checkpoint.hpp"
#include "dra/claim_status.hpp"
#include "roles/common/imex_mode.hpp"
#include "roles/common/opaque_config.hpp"
#include "roles/kubelet_plugin/trouble.hpp"

#include <vector>

namespace nvdra::roles::kubelet_plugin {

struct DeviceName {
  dra::CheckpointDevice::Kind kind;
  unsigned id;
};
// "channel-<N>" with N < 2048, or "daemon-0"; nothing for other names.
std::optional<DeviceName> parse_device_name(std::string_view name);

// One config and the allocated devices that it applies to, in the order of the allocation.
struct ConfigGroup {
  OpaqueConfig config;
  std::vector<dra::AllocatedDevice> devices;

  const DomainUid& domain() const;
  bool is_channel() const { return std::holds_alternative<ChannelConfig>(config); }
};

enum class Decoding { strict, lenient };

// `status` is the claim's status. Precedence: FromClaim over FromClass, later over earlier; a
// config that names the result's request (or the request of a "request/subrequest") beats none; one
// without requests applies where its kind fits the device. Devices of other drivers are ignored.
// All troubles are permanent: unknown device, source, kind; a config that does not fit its device;
// no domainID; a domainID that is no legal one; more than one device for one config. A claim
// without any device of this driver gives no groups.
Attempt<std::vector<ConfigGroup>> read_allocation(const Json& status, Decoding decoding);

// The domain that a stored status refers to, for undoing; empty when it cannot be read or is not a
// legal path component (reports 8: undoing never fails on what was stored).
DomainUid stored_domain(const Json& status);

}  // namespace nvdra::roles::kubelet_plugin
