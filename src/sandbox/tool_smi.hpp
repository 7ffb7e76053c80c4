// nvidia-smi: the forms of it that programs use, as text. Pure.
#pragma once

#include "sandbox/tool_facts.hpp"

#include <span>
#include <string>

namespace nvdra::sandbox {

// What a tool has to say and how it ends.
struct ToolAnswer {
  std::string out;
  std::string err = {};
  int status = 0;
};

// -L, -q, -q -x, --version, --query-gpu=… --format=csv[,noheader][,nounits] with -i, and the short
// overview without arguments. `now` is local time, for the reports.
ToolAnswer nvidia_smi(const NodeFacts& facts, std::span<const std::string> arguments,
                      const std::string& now);

std::string smi_report(const NodeFacts& facts, std::span<const imex::Gpu> gpus,
                       const std::string& now);
std::string smi_xml(const NodeFacts& facts, std::span<const imex::Gpu> gpus,
                    const std::string& now);

}  // namespace nvdra::sandbox
