// What an executable or library of the driver says about libraries: its own name, and those that it
// is linked against.
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

namespace nvdra::roles::kubelet_plugin {

struct ElfNames {
  std::string soname;  // "" = none
  std::vector<std::string> needed;
};

// Reads the dynamic section of a 64-bit little-endian ELF file. A file that is not one (a script),
// or that has no dynamic section, has no names; only a file that cannot be read, or whose dynamic
// section points outside it, is an error.
Result<ElfNames> read_elf_names(const std::string& path);

}  // namespace nvdra::roles::kubelet_plugin
