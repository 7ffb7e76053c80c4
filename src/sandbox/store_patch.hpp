// The patch formats of the API server. (Merge patch, RFC 7386, is base/json.hpp's merge_patch.)
#pragma once

#include "sandbox/store_resource.hpp"

namespace nvdra::sandbox {

// RFC 6902: add, remove, replace, move, copy, test; all or nothing. A patch that does not apply
// (a `test` that fails, a path that is not there) is `invalid` with the API server's text, which
// does not say which operation it was.
Result<Json> json_patch(Json target, const Json& patch);

// The key that identifies the items of the list `field` ("name" for containers); "" when the list
// is replaced as a whole, "=" when it is a set of scalars (finalizers). Fields of the Kubernetes
// types; for custom resources the schema's list-map keys are used instead.
std::string_view merge_key(std::string_view field);

// Strategic merge patch, with the directives $patch, $retainKeys, $deleteFromPrimitiveList and
// $setElementOrder (the order itself is not kept).
Result<Json> strategic_merge(Json target, const Json& patch);

// Server-side apply without ownership: lists with keys are merged by key, everything else like a
// merge patch, and fields that `previous` (this manager's last apply, or null) had and `patch` has
// not are removed. `schema` is a custom resource's, or nullptr.
Json apply_merge(Json target, const Json& patch, const Json& previous, const Json* schema);

}  // namespace nvdra::sandbox
