// The kernel's list of device classes, /proc/devices: class name → major number.
// The number differs per boot and per host (node-side.md 3.7, imex-facts.md 6).
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace nvdra::imex {

inline constexpr std::string_view channel_class = "nvidia-caps-imex-channels";
inline constexpr std::string_view capability_class = "nvidia-caps";

// The major number of the character device class whose whole name is `name`. `where` names the
// source in errors. Pure. A missing class and a malformed line are explained in one sentence.
Result<std::uint32_t> parse_device_major(std::string_view text, std::string_view name,
                                         std::string_view where = "/proc/devices");

// The same from a file; ALT_PROC_DEVICES_PATH is the caller's business.
Result<std::uint32_t> read_device_major(const std::string& path, std::string_view name);

}  // namespace nvdra::imex
