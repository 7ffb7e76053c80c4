// What a line of nvidia-imex's log means to its supervisor (imex-facts.md 5). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nvdra::imex {

struct LineMeaning {
  // "Identified this node as ID N": the slot that the process believes to be its own.
  std::optional<std::int64_t> identified = {};
  // Why the process cannot work, with what to do about it; "" = nothing known.
  std::string trouble = {};
  // Worth a person's attention, though the process works; "" = nothing.
  std::string notice = {};
};

// Unknown lines mean nothing.
LineMeaning read_log_line(std::string_view line);

}  // namespace nvdra::imex
