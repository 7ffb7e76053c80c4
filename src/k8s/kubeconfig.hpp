// The text of a kubeconfig → Config. Reads the files that it names, relative to `folder`.
#pragma once

#include "k8s/config.hpp"

namespace nvdra::k8s {

// `context` "" = current-context. Errors: bad_config, one sentence with the context, cluster or
// user and the field.
Result<Config> parse_kubeconfig(const std::string& text, const std::string& folder,
                                const std::string& context);

// "https://[::1]:6443/k8s/x" → host, port, tls and path prefix of `config`.
Result<void> parse_server(std::string_view url, Config& config);

// Standard alphabet; line ends are allowed. nullopt: not base64.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace nvdra::k8s
