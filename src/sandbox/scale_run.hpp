// The command `scale`: how long nvdra's controller takes for many domains on thousands of simulated
// nodes, what it asks of the API server, and what it needs itself.
#pragma once

#include <span>
#include <string>

namespace nvdra::sandbox {

// scale [--nodes N] [--domains N] [--nvdra FILE] [--keep]: prints its figures. Exit status: 0 all
// domains were formed, healed and removed; 1 they were not within two minutes each; 2 usage.
int run_scale(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
