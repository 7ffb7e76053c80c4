// The template of nvidia-imex's configuration, as it lies in a domain's directory for the daemon
// (node-side.md 12). The daemon may be of another release: the two fields and their Go template
// syntax are a contract [KEEP].
#pragma once

#include <string_view>

namespace nvdra::roles::kubelet_plugin {

inline constexpr std::string_view imex_template_file = "imexd.cfg.tmpl";

std::string_view imex_template();

}  // namespace nvdra::roles::kubelet_plugin
