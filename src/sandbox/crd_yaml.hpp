// YAML documents as JSON values: manifests and apply patches. (JSON is YAML, too.)
#pragma once

#include "base/json.hpp"

namespace nvdra::sandbox {

// Every non-empty document of the text. Scalars have the types of YAML's core schema; quoted ones
// are strings. The error names the line.
Result<std::vector<Json>> parse_yaml(std::string_view text);

// The documents of a file; the error names the file.
Result<std::vector<Json>> read_yaml_file(const std::string& path);

}  // namespace nvdra::sandbox
