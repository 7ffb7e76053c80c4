// The driver's capability file fabric-imex-mgmt: the device that an IMEX daemon needs
// (node-side.md 3.7, imex-facts.md 7).
#pragma once

#include "base/result.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace nvdra::imex {

struct Capability {
  std::uint32_t minor = 0;  // differs per driver version
  mode_t mode = 0;          // written as a decimal number in the file
  bool operator==(const Capability&) const = default;
};

inline constexpr std::string_view fabric_management_path =
    "/proc/driver/nvidia/capabilities/fabric-imex-mgmt";

// Lines `Key: decimal`; unknown keys and lines are ignored. Pure. An absent or malformed minor or
// mode is an error that names `where` and the key.
Result<Capability> parse_capability(std::string_view text,
                                    std::string_view where = fabric_management_path);
Result<Capability> read_capability(const std::string& path);

// "/dev/nvidia-caps/nvidia-cap<minor>"
std::string capability_device_path(std::uint32_t minor);

}  // namespace nvdra::imex
