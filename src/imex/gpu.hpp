// What nvidia-smi says about the GPUs of a node. Pure parsers; every error names the line that was
// not understood (imex-facts.md 8).
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::imex {

enum class FabricState { not_supported, not_started, in_progress, completed };
std::string_view words(FabricState state);  // as nvidia-smi spells it

struct Gpu {
  unsigned index = 0;
  std::string name;
  std::string uuid;            // "GPU-…"
  std::string driver_version;  // "570.158.01"
  FabricState state = FabricState::not_supported;
  std::string status;  // "Success", an error text, or "" = not reported
  std::optional<std::uint32_t> clique_number;
  std::string cluster_uuid;  // lower case; "" = none (also when all zero)

  bool operator==(const Gpu&) const = default;
  std::string label() const;  // "GPU 3 (GPU-…, NVIDIA GB200)"
};

// The fields that parse_gpu_query() expects, for --query-gpu=.
inline constexpr std::string_view gpu_query_fields =
    "index,name,uuid,driver_version,fabric.state,fabric.status,fabric.cliqueId,fabric.clusterUuid";

// Output of `nvidia-smi --query-gpu=<gpu_query_fields> --format=csv,noheader`.
// "No devices were found" is an empty list. Lines that begin with "WARNING:" are passed over.
Result<std::vector<Gpu>> parse_gpu_query(std::string_view csv);

// True when the driver is too old for these fields (`Field "fabric.state" is not a valid field`).
bool lacks_query_field(std::string_view output);

// Output of `nvidia-smi -q`, which old drivers understand as well: their Fabric section may lack
// the clique (then the GPU has none) or be absent (then the state is not_supported).
Result<std::vector<Gpu>> parse_gpu_report(std::string_view text);

}  // namespace nvdra::imex
