// nvdra-sandbox api: the API server and the controllers, until SIGINT or SIGTERM.
#pragma once

#include <span>
#include <string>

namespace nvdra::sandbox {

// Prints the path of the kubeconfig once clients can connect. → exit status
int run_api(std::span<const std::string> arguments);

}  // namespace nvdra::sandbox
