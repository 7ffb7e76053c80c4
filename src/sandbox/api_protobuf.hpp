// Request bodies in Kubernetes' protobuf encoding. `kubectl create namespace|configmap|secret|
// serviceaccount`, `kubectl auth can-i` and `kubectl drain` send them and do not fall back to JSON.
#pragma once

#include "base/json.hpp"

namespace nvdra::sandbox {

// The object as JSON. Kinds that are not among the above are refused as unsupported_media, with the
// advice to use `kubectl apply`, which sends JSON.
Result<Json> from_protobuf(std::string_view body);

}  // namespace nvdra::sandbox
