#include "imex/gpu.hpp"

#include "base/try.hpp"
#include "imex/gpu_cells.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::imex {
namespace {

constexpr std::size_t columns = std::ranges::count(gpu_query_fields, ',') + 1;

Result<Gpu> parse_row(std::string_view line) {
  std::array<std::string_view, columns> cell;
  std::string_view rest = line;
  for (std::size_t i = 0; i < columns; ++i) {
    const auto comma = rest.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == columns))
      return not_understood(line,
                            fmt::format("it should have {} values separated by commas", columns));
    cell[i] = trim(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }

  const auto index = parse_number<unsigned>(cell[0]);
  if (!index) return not_understood(line, "it should begin with the index of a GPU");
  if (value_of(cell[1]).empty() || value_of(cell[2]).empty())
    return not_understood(line, "the GPU's name or UUID is missing");
  Gpu gpu;
  gpu.index = *index;
  gpu.name = cell[1];
  gpu.uuid = cell[2];
  gpu.driver_version = value_of(cell[3]);
  TRY_VOID(put_fabric(gpu, {{cell[4], line}, {cell[5], line}, {cell[6], line}, {cell[7], line}}));
  return gpu;
}

}  // namespace

std::string_view words(FabricState state) {
  switch (state) {
    case FabricState::not_supported: return "Not Supported";
    case FabricState::not_started: return "Not Started";
    case FabricState::in_progress: return "In Progress";
    case FabricState::completed: return "Completed";
  }
  __builtin_unreachable();
}

std::string Gpu::label() const {
  return fmt::format("GPU {} ({}, {})", index, uuid, name);
}

Result<std::vector<Gpu>> parse_gpu_query(std::string_view csv) {
  std::vector<Gpu> gpus;
  while (const auto line = next_line(csv)) {
    const std::string_view row = trim(*line);
    if (row.empty() || row.starts_with("WARNING:") || says_no_devices(row)) continue;
    TRY(Gpu gpu, parse_row(row));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

bool lacks_query_field(std::string_view output) {
  return output.find("is not a valid field to query") != std::string_view::npos;
}

}  // namespace nvdra::imex
