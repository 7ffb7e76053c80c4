// The simulated tools of a GPU node: nvidia-smi, nvidia-imex and nvidia-imex-ctl. They are the
// program nvdra-sandbox under another name: main() asks is_tool(argv[0]) first.
//
// They look and answer as the real ones do (spec of their output: what public samples show), need
// nothing but their own file, and take what they say from two files of the driver root they lie in
// (tool_facts.hpp). Without those files they are a healthy two-GPU node of an NVLink domain.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nvdra::sandbox {

// `program` is a file name, without directories.
bool is_tool(std::string_view program);

// Runs the tool and returns its exit status. 125: a file of the driver root is malformed; the
// sentence on stderr names it.
int run_tool(std::string_view program, std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
