#include "imex/capability.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <optional>

namespace nvdra::imex {
namespace {

Result<std::uint32_t> number_of(std::string_view text, std::string_view key,
                                std::string_view where) {
  while (const auto line = next_line(text)) {
    const auto colon = line->find(':');
    if (colon == std::string_view::npos || trim(line->substr(0, colon)) != key) continue;
    const std::string_view value = trim(line->substr(colon + 1));
    if (const auto number = parse_number<std::uint32_t>(value)) return *number;
    return refuse(fmt::format("{} has {}: \"{}\", which is no decimal number", where, key, value));
  }
  return refuse(
      fmt::format("{} has no line {}: the file is not one of the NVIDIA driver's capability files",
                  where, key));
}

}  // namespace

Result<Capability> parse_capability(std::string_view text, std::string_view where) {
  TRY(const std::uint32_t minor, number_of(text, "DeviceFileMinor", where));
  TRY(const std::uint32_t mode, number_of(text, "DeviceFileMode", where));
  if (mode > 07777)
    return refuse(fmt::format("{} has DeviceFileMode: {}, which is no file mode", where, mode));
  return Capability{.minor = minor, .mode = static_cast<mode_t>(mode)};
}

Result<Capability> read_capability(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return std::move(text).failure().during("read capability file " + path);
  return parse_capability(*text, path);
}

std::string capability_device_path(std::uint32_t minor) {
  return fmt::format("/dev/nvidia-caps/nvidia-cap{}", minor);
}

}  // namespace nvdra::imex
