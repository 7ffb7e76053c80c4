// A certificate for the sandbox's API server.
#pragma once

#include "base/result.hpp"

#include <string>
#include <vector>

struct ssl_ctx_st;

namespace nvdra::sandbox {

// Makes a key and a certificate, signed by itself, valid for ten years for these IPv4 addresses,
// and lets the TLS context use them. Returns the certificate as PEM: whom clients are to believe.
Result<std::string> use_own_certificate(ssl_ctx_st* context, const std::vector<std::string>& names);

}  // namespace nvdra::sandbox
