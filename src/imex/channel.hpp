// IMEX channels: number → names. The driver creates no device node itself; container runtimes make
// them from CDI files (node-side.md 3.7).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace nvdra::imex {

// The original's fixed number; the driver's own default of NVreg_ImexChannelCount as well.
inline constexpr unsigned channel_count = 2048;
inline constexpr mode_t channel_mode = 0666;

struct Channel {
  unsigned number;
  dev_t device;      // major of nvidia-caps-imex-channels, minor = number
  std::string path;  // /dev/nvidia-caps-imex-channels/channel<number>
};

// `number` must be below channel_count.
Channel channel(unsigned number, unsigned major);

// "channel-<number>": the name in ResourceSlices and claims, and back. Nothing for other names and
// for numbers that no node has.
std::string channel_device_name(unsigned number);
std::optional<unsigned> channel_number(std::string_view device_name);

}  // namespace nvdra::imex
