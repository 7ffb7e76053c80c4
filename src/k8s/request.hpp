// Requests of the Kubernetes API as text: verb, path, query, body. Pure.
#pragma once

#include "k8s/client.hpp"

namespace nvdra::k8s {

// `page_token` is the `continue` of the page before, "" for the first one.
HttpRequest list_request(const ResourceType& type, const std::string& space,
                         const ListOptions& options, const std::string& page_token);
HttpRequest watch_request(const ResourceType& type, const std::string& space,
                          const WatchOptions& options);
HttpRequest patch_request(const ResourceType& type, const ObjectKey& key, const Json& patch,
                          const PatchOptions& options);
HttpRequest delete_request(const ResourceType& type, const ObjectKey& key,
                           const DeleteOptions& options);

// Everything but RFC 3986's unreserved characters becomes %XX.
std::string percent_encoded(std::string_view text);

// A name that would change the meaning of a path ("", ".", "..") is refused.
Result<void> check_name(std::string_view name);

}  // namespace nvdra::k8s
