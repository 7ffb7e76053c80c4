#include "imex/gpu_cells.hpp"

#include "base/ids.hpp"
#include "imex/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nvdra::imex {
namespace {

constexpr std::array<FabricState, 4> states = {FabricState::not_supported, FabricState::not_started,
                                               FabricState::in_progress, FabricState::completed};

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

}  // namespace

std::string_view value_of(std::string_view cell) {
  cell = trim(cell);
  for (const std::string_view none :
       {"N/A", "[N/A]", "Not Supported", "[Not Supported]", "[Not Available]", "None"})
    if (cell == none) return {};
  return cell;
}

Failure not_understood(std::string_view line, std::string_view why) {
  return refuse(fmt::format("nvidia-smi printed the line \"{}\", which is not understood: {}",
                            trim(line), why));
}

Result<void> put_fabric(Gpu& gpu, const FabricCells& cells) {
  const std::string_view state = value_of(cells.state.value);
  const auto known = std::ranges::find_if(states, [&](FabricState s) {
    return lower(state) == lower(words(s)) || (state.empty() && s == FabricState::not_supported);
  });
  if (known == states.end())
    return not_understood(cells.state.line,
                          fmt::format("{} is none of the fabric states Not Supported, Not "
                                      "Started, In Progress and Completed",
                                      state));
  gpu.state = *known;
  gpu.status = value_of(cells.status.value);

  if (const std::string_view clique = value_of(cells.clique.value); !clique.empty()) {
    gpu.clique_number = parse_number<std::uint32_t>(clique);
    if (!gpu.clique_number)
      return not_understood(cells.clique.line, fmt::format("{} is no clique number", clique));
  }
  if (const std::string_view cluster = value_of(cells.cluster.value); !cluster.empty()) {
    if (!is_uuid(cluster))
      return not_understood(cells.cluster.line, fmt::format("{} is no UUID", cluster));
    if (cluster.find_first_not_of("0-") != std::string_view::npos)
      gpu.cluster_uuid = lower(cluster);
  }
  return ok();
}

bool says_no_devices(std::string_view line) {
  return trim(line) == "No devices were found";
}

}  // namespace nvdra::imex
