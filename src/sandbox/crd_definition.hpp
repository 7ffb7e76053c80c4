// CustomResourceDefinition → Resource.
#pragma once

#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

// The error names the field of the definition that is missing or wrong.
Result<Resource> resource_of_crd(const Json& definition);

// The definition's status once it is served: accepted names, conditions NamesAccepted and
// Established, stored versions.
Json established_status(const Json& definition, std::string_view now);

}  // namespace nvdra::sandbox
