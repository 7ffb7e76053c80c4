// Requests about objects, except watches and streams: one request, one answer.
#pragma once

#include "sandbox/api_route.hpp"
#include "sandbox/store_registry.hpp"

namespace nvdra::sandbox {

Answer answer_object_request(Registry& registry, const Route& route, const Request& request);

// The filter of a list or watch: namespace, name, selectors.
Result<Filter> filter_of(const Route& route, const Request& request);

// An answer that says no.
Answer refusal(const Error& error);

}  // namespace nvdra::sandbox
