#include "imex/device_major.hpp"

#include "base/files.hpp"
#include "base/try.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

namespace nvdra::imex {

Result<std::uint32_t> parse_device_major(std::string_view text, std::string_view name,
                                         std::string_view where) {
  bool characters = true;  // excerpts lack the first heading
  while (const auto line = next_line(text)) {
    const std::string_view row = trim(*line);
    if (row.ends_with(':')) {
      characters = row == "Character devices:";
      continue;
    }
    const auto blank = row.find_first_of(" \t");
    if (!characters || blank == std::string_view::npos) continue;
    if (trim(row.substr(blank)) != name) continue;
    if (const auto major = parse_number<std::uint32_t>(row.substr(0, blank))) return *major;
    return refuse(
        fmt::format("{} has the line \"{}\", whose first word is no device number", where, row));
  }
  return refuse(fmt::format(
      "{} lists no character device class {}: the NVIDIA kernel module is not loaded on this node "
      "or has no IMEX support; load a driver of version 560 or later and check "
      "`grep ImexChannelCount /proc/driver/nvidia/params`",
      where, name));
}

Result<std::uint32_t> read_device_major(const std::string& path, std::string_view name) {
  Result<std::string> text = read_file(path);
  if (!text) return std::move(text).failure().during("read device classes from " + path);
  return parse_device_major(*text, name, path);
}

}  // namespace nvdra::imex
