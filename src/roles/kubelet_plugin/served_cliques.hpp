// Daemons that run here for a clique that the node is not in any more (node-side.md 18.1 no. 22).
// A daemon keeps the clique that it was started with; its claim's CDI file says which, also after a
// restart of the plugin.
#pragma once

#include "cdi/spec_dir.hpp"
#include "dra/checkpoint.hpp"

#include <string>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

// One sentence per prepared daemon claim whose file names another clique than `now`. Files that
// cannot be read are passed over.
std::vector<std::string> daemons_of_former_cliques(const dra::Checkpoint& checkpoint,
                                                   const cdi::SpecDir& cdi, const CliqueId& now);

}  // namespace nvdra::roles::kubelet_plugin
