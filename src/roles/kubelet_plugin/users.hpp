// The pods that a claim is reserved for: to tell them something, and to notice that nobody waits
// any more. The kubelet does not cancel a prepare when its pod is deleted, and removes the pod only
// after the answer.
#pragma once

#include "k8s/client.hpp"
#include "k8s/events.hpp"

#include <vector>

namespace nvdra::roles::kubelet_plugin {

// From a claim's status and namespace.
std::vector<k8s::ObjectReference> pods_of(const Json& status, const std::string& space);

// Whether every one of them is gone or being deleted. No: there are none, or one cannot be looked
// at.
Async<bool> all_leaving(k8s::Client& client, std::vector<k8s::ObjectReference> users);

}  // namespace nvdra::roles::kubelet_plugin
