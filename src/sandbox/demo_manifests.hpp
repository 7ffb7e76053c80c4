// The manifests of the guide, word for word.
#pragma once

#include <string>
#include <string_view>

namespace nvdra::sandbox {

extern const std::string_view compute_domain_manifest;  // "Create a ComputeDomain"
extern const std::string_view workload_manifest;        // "Use the channel in a workload"

// The workload with the guide's further expression: only on this node.
std::string workload_on(std::string_view node);

// The same workload under another name.
std::string workload_named(std::string_view name);

}  // namespace nvdra::sandbox
