// Golden CDI files and the specs they were made from.
#pragma once

#include "cdi/names.hpp"
#include "cdi/spec.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace nvdra::cdi {

inline std::string golden(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/cdi/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no golden file " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline const ClaimUid claim_with_digit{"1b4e28ba-2fa1-11d2-883f-0016d3cca427"};
inline const ClaimUid claim_with_letter{"ab4e28ba-2fa1-11d2-883f-0016d3cca427"};

inline DeviceNode channel_node(std::uint32_t number) {
  return {.path = "/dev/nvidia-caps-imex-channels/channel" + std::to_string(number),
          .major = 235,
          .minor = number,
          .file_mode = 0666};
}

inline Spec channel_spec(const ClaimUid& claim, std::uint32_t number = 0) {
  Spec spec{.kind = std::string(claim_kind)};
  spec.devices.push_back({.name = claim_device(claim, "channel-" + std::to_string(number)),
                          .edits = {.device_nodes = {channel_node(number)}}});
  return spec;
}

inline Spec daemon_spec() {
  const std::string domain = "0f8fad5b-d9cb-469f-a165-70867728950e";
  ContainerEdits edits;
  edits.env = {"CLIQUE_ID=00000000-0000-0000-0000-0000000000aa.32766",
               "COMPUTE_DOMAIN_UUID=" + domain, "COMPUTE_DOMAIN_NAME=my-compute-domain",
               "COMPUTE_DOMAIN_NAMESPACE=default"};
  edits.device_nodes = {
      {.path = "/dev/nvidia-caps/nvidia-cap3", .major = 236, .minor = 3, .file_mode = 0400}};
  edits.mounts = {
      {.host_path = "/var/lib/kubelet/plugins/compute-domain.nvidia.com/domains/" + domain,
       .container_path = "/imexd",
       .options = {"rw", "nosuid", "nodev", "bind"}}};
  Spec spec{.kind = std::string(claim_kind)};
  spec.devices = {{.name = claim_device(claim_with_digit, "daemon-0"), .edits = edits}};
  return spec;
}

// As a container sees it that has the driver root /run/nvidia/driver at /driver-root.
inline Spec base_spec() {
  ContainerEdits all;
  all.device_nodes = {
      {.path = "/dev/nvidia-caps/nvidia-cap4323",
       .major = 235,
       .minor = 4323,
       .file_mode = 0400,
       .permissions = "rwm"},
      {.path = "/dev/nvidiactl",
       .major = 195,
       .minor = 255,
       .file_mode = 0666,
       .permissions = "rwm"},
      {.path = "/dev/nvidia0", .major = 195, .file_mode = 0660, .permissions = "rwm", .gid = 27},
      {.path = "/dev/nvidiactl",
       .major = 195,
       .minor = 255,
       .file_mode = 0666,
       .permissions = "rwm"},
  };
  all.additional_gids = {27, 27};
  ContainerEdits common;
  common.env = {"NVIDIA_CTK_LIBCUDA_DIR=/usr/lib/x86_64-linux-gnu", "NVIDIA_VISIBLE_DEVICES=void",
                "NVIDIA_VISIBLE_DEVICES=void"};
  common.hooks = {
      {.hook_name = "createContainer",
       .path = "/var/lib/kubelet/plugins/compute-domain.nvidia.com/nvidia-cdi-hook",
       .args = {"nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib/x86_64-linux-gnu"},
       .env = {"NVIDIA_CTK_DEBUG=false"}}};
  common.mounts = {{.host_path = "/driver-root/usr/bin/nvidia-imex",
                    .container_path = "/usr/bin/nvidia-imex",
                    .options = {"ro", "nosuid", "nodev", "rbind", "rprivate"}}};
  return {.kind = std::string(device_kind),
          .devices = {{.name = "all", .edits = all}},
          .edits = common};
}

}  // namespace nvdra::cdi
