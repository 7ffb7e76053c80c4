// What a server says about itself: versions, groups, resources, OpenAPI documents, health.
#pragma once

#include "sandbox/api_http.hpp"
#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

// nullopt when the path is none of these.
std::optional<Answer> answer_discovery(const Request& request, const Catalog& catalog,
                                       const std::string& server_version);

// /openapi/v3…: documents just good enough for kubectl to find out that the server checks fields.
std::optional<Answer> answer_openapi(const Request& request, const Catalog& catalog);

}  // namespace nvdra::sandbox
