// A container's command and environment as Kubernetes makes them from the pod's object. Pure.
#pragma once

#include "base/json.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

// What a kubelet knows beyond the pod's object when it starts a container.
struct PodFacts {
  std::string address;  // status.podIP
  std::string host;     // status.hostIP
};

using KnownVariables = std::map<std::string, std::string, std::less<>>;

// "$(NAME)" replaced where NAME is known, left as it is where not; "$$" is "$".
std::string expand(std::string_view text, const KnownVariables& variables);

// The container's env in its order, as "K=V": values expanded with what stands before them, and
// fieldRef (metadata.name, .namespace, .uid, .labels['K'], .annotations['K'], spec.nodeName,
// spec.serviceAccountName, status.podIP, .podIPs, .hostIP, .hostIPs). The error names the
// variable whose source the sandbox does not have (ConfigMaps, Secrets, resources).
Result<std::vector<std::string>> environment_of(const Json& pod, const Json& container,
                                                const PodFacts& facts);

// The variables of "K=V" entries; later ones win.
KnownVariables variables_of(const std::vector<std::string>& environment);
// Those with a literal value only, as a probe's command knows them.
KnownVariables literal_variables(const Json& container);

// The texts of an array with their variables replaced.
std::vector<std::string> expanded(const JsonArray& words, const KnownVariables& variables);

}  // namespace nvdra::sandbox
