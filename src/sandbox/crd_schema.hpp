// Structural schemas of custom resources (openAPIV3Schema), as far as our CRDs use them:
// type, properties, additionalProperties, items, required, enum, default, nullable, minimum,
// maximum, minLength, maxLength, minItems, maxItems, pattern, format date-time,
// x-kubernetes-preserve-unknown-fields, x-kubernetes-int-or-string, list-type map and set, and
// x-kubernetes-validations (store_cel.hpp).
#pragma once

#include "base/json.hpp"

namespace nvdra::sandbox {

// Removes fields that the schema does not know, and nulls of fields that are not nullable and have
// a default. apiVersion, kind and metadata at the top are kept. Returns the paths of what was
// unknown ("spec.nodes[0].x").
std::vector<std::string> prune(const Json& schema, Json& object);
// Fills in defaults of missing fields.
void fill_defaults(const Json& schema, Json& object);
// What is wrong, as "path: message"; `before` is the stored object for rules about transitions, or
// nullptr at creation.
std::vector<std::string> schema_errors(const Json& schema, const Json& object, const Json* before);

}  // namespace nvdra::sandbox
