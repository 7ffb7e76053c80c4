// What a container runtime does with CDI devices: finds them in the node's CDI files.
#pragma once

#include "base/result.hpp"
#include "cdi/spec.hpp"

#include <string>
#include <vector>

namespace nvdra::sandbox {

// The edits of all `devices` ("vendor/class=name"), with those of their files. The error names the
// devices that no file in `directory` has, or the file that cannot be read.
Result<cdi::ContainerEdits> cdi_edits(const std::string& directory,
                                      const std::vector<std::string>& devices);

}  // namespace nvdra::sandbox
