// Spec → file text, pure (node-side.md 8.1). The same values always give the same bytes, whatever
// their order was.
#pragma once

#include "cdi/spec.hpp"

#include <string>
#include <string_view>

namespace nvdra::cdi {

// YAML beginning with "---". Exact duplicates are dropped; device nodes and mounts are sorted by
// (number of '/', path), devices by name. cdiVersion is the lowest that has what the spec uses:
// 0.5.0 for a device name that begins with a digit or a hostPath of a node, 0.7.0 for
// additionalGids, else 0.3.0.
std::string render(Spec spec);

// Paths of a container that sees the driver root at `container_root` → paths of the host, which has
// it at `host_root`. When the two differ, every device node gets a hostPath. Equal roots: no
// change. Shared nodes have the host's paths already.
Spec with_host_paths(Spec spec, std::string_view container_root, std::string_view host_root);

}  // namespace nvdra::cdi
