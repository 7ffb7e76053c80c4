#include "k8s/kubeconfig.hpp"

#include "target.hpp"

using namespace nvdra;

void fuzz(std::string_view text) {
  // No file that it names can be there.
  Result<k8s::Config> config = k8s::parse_kubeconfig(std::string(text), "/nonexistent", "");
  if (!config) require(!config.error().text().empty(), "every error says something");
  k8s::Config server;
  (void)k8s::parse_server(text, server);
  (void)k8s::base64_decoded(text);
}
