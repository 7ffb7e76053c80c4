// HTTP/1.1 and TLS to the API server: a keep-alive pool. OpenSSL and Beast stay behind it.
//   * TLS 1.2 or newer, the CA of the config only, the peer's name or address verified.
//   * At most `in_flight` requests at once, first come, first served; streams and urgent requests
//     are not counted. Idle connections are closed after 90 s; until then they keep the loop's
//     run() from returning, unless the transport goes first.
//   * Connecting has its own limit; half-open connections are found by the limits of the calls and
//     by the kernel (keep-alive, unacknowledged data).
//   * The token file is read again when it was replaced, looked at most once a second; after a 401
//     at once, and the request is repeated once.
#pragma once

#include "k8s/config.hpp"
#include "k8s/transport.hpp"

#include <memory>

namespace nvdra::k8s {

struct HttpLimits {
  int in_flight = 16;  // each connection costs up to 100 KiB
  Duration connect = 10s;
  Duration idle = 90s;
  std::size_t body = 512u << 20;
};

// Errors: bad_config, with what is wrong in the certificates or keys.
Result<std::unique_ptr<Transport>> make_http_transport(asio::any_io_executor executor, Time& time,
                                                       Config config, HttpLimits limits = {});

}  // namespace nvdra::k8s
