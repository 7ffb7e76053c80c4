// The daemon's own knowledge, for the probes and for people in the pod: HTTP over an abstract Unix
// socket. Abstract, so that it needs no directory that can be written, is never stale, and belongs
// to the pod's network namespace.
//   /check    200 "READY", or 503 and the reason
//   /metrics  Prometheus text
//   curl --abstract-unix-socket nvdra-daemon/<pod uid> http://d/check
#pragma once

#include "base/time.hpp"
#include "k8s/http_endpoint.hpp"

#include <functional>
#include <string>

namespace nvdra::roles::daemon {

using Pages = std::function<k8s::HttpReply(std::string_view path)>;

// Serves until cancelled. Fails when the name is taken: another daemon of this pod runs.
Async<Result<void>> serve_status(asio::any_io_executor executor, Time& time, std::string name,
                                 Pages pages);

// Asks for a page: its status and text. errc::connection_refused when nobody serves.
Async<Result<k8s::HttpReply>> ask_status(Time& time, std::string name, std::string path);

}  // namespace nvdra::roles::daemon
