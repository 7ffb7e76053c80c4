// The names that the plugin, the kubelet and the container runtime share (node-side.md 8, 3.10).
#pragma once

#include "base/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace nvdra::cdi {

inline constexpr std::string_view claim_kind = "k8s.compute-domain.nvidia.com/claim";
inline constexpr std::string_view device_kind = "k8s.compute-domain.nvidia.com/device";

// "k8s.compute-domain.nvidia.com-claim_<uid>.yaml", and back.
std::string claim_file(const ClaimUid& claim);
std::optional<ClaimUid> claim_of_file(std::string_view file);
// "k8s.compute-domain.nvidia.com-device_base.yaml"
std::string base_file();

// "<uid>-<device>": the device of a claim inside its file; `device` as allocated ("channel-0").
std::string claim_device(const ClaimUid& claim, std::string_view device);
// "k8s.compute-domain.nvidia.com/claim=<uid>-<device>": what the kubelet hands to the runtime.
std::string claim_device_id(const ClaimUid& claim, std::string_view device);
// "k8s.compute-domain.nvidia.com/device=all"
std::string base_device_id();

}  // namespace nvdra::cdi
