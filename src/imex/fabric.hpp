// Which fabric clique a node belongs to, from what its GPUs say. Pure (node-side.md 3.6).
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "imex/gpu.hpp"

#include <span>
#include <string>
#include <vector>

namespace nvdra::imex {

struct Fabric {
  CliqueId clique;  // "<cluster uuid>.<number>"; empty = this node is in no clique
  // One line per GPU for the start-up log: "identified fabric clique …" or "no-clique fallback …".
  std::vector<std::string> notes;
  // Not empty: a sentence that names the GPUs without clique on a node that has one.
  std::string mixed;
};

// What an unfinished fabric registration means to the strict rules.
enum class Unfinished {
  is_an_error,
  is_no_clique,  // gate FabricManagerPartitioning on a single-node NVLink system
};

// Gate CrashOnNVLinkFabricErrors on: a GPU whose registration is unfinished or failed is an error.
Result<Fabric> strict_fabric(std::span<const Gpu> gpus, Unfinished unfinished);
// Gate off: such a GPU counts as having no clique.
Result<Fabric> lenient_fabric(std::span<const Gpu> gpus);

// Both: GPUs named (NVIDIA) DGX Display do not count; GPUs in different cliques are an error.
// Errors are sentences that name the GPU.

}  // namespace nvdra::imex
