// The built-in resources.
#pragma once

#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

std::vector<Resource> built_in_resources(const std::vector<std::string>& resource_versions);

}  // namespace nvdra::sandbox
