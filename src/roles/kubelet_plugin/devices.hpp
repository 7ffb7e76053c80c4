// What this node can give: channel numbers → CDI files.
#pragma once

#include "cdi/spec.hpp"
#include "dra/checkpoint.hpp"
#include "roles/kubelet_plugin/allocation.hpp"

namespace nvdra::roles::kubelet_plugin {

struct Roots {
  std::string container;     // the driver root as this process sees it
  std::string host;          // and as the host has it
  std::string proc_devices;  // /proc/devices, or ALT_PROC_DEVICES_PATH
};

// The CDI file of a claim whose channel groups are `groups`, all 2048 channels for allocationMode
// All where `all_allowed`. An error when /proc/devices lacks the class (reports 14): nothing is
// written.
Result<cdi::Spec> channel_spec(const ClaimUid& claim, const std::vector<ConfigGroup>& groups,
                               const Roots& roots, bool all_allowed);

// The checkpoint's record of the same groups. Without edits (a node without fabric) the devices
// have no CDI ids.
std::vector<dra::DeviceGroup> prepared_groups(const ClaimUid& claim,
                                              const std::vector<ConfigGroup>& groups,
                                              bool with_edits);

}  // namespace nvdra::roles::kubelet_plugin
