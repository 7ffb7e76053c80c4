#include "imex/channel.hpp"

#include "imex/text.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <cassert>

namespace nvdra::imex {
namespace {

constexpr std::string_view name_prefix = "channel-";

}  // namespace

Channel channel(unsigned number, unsigned major) {
  assert(number < channel_count);
  return {.number = number,
          .device = makedev(major, number),
          .path = fmt::format("/dev/nvidia-caps-imex-channels/channel{}", number)};
}

std::string channel_device_name(unsigned number) {
  return fmt::format("{}{}", name_prefix, number);
}

std::optional<unsigned> channel_number(std::string_view device_name) {
  if (!device_name.starts_with(name_prefix)) return std::nullopt;
  const std::string_view digits = device_name.substr(name_prefix.size());
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  const auto number = parse_number<unsigned>(digits);
  if (!number || *number >= channel_count) return std::nullopt;
  return number;
}

}  // namespace nvdra::imex
