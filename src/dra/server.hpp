// Server: the plugin as the kubelet sees it: dra.sock with the DRA services, and the socket in the
// registrar directory that announces it (node-side.md 4). Both stay for the whole life: a kubelet
// that has restarted finds them again, and if somebody removes them they are made again.
#pragma once

#include "base/event.hpp"
#include "base/time.hpp"
#include "dra/plugin.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace nvdra::dra {

struct ServerConfig {
  std::string driver;                                            // "compute-domain.nvidia.com"
  std::string plugin_directory;                                  // absolute, exists
  std::string registrar_directory;                               // absolute, exists: the kubelet's
  std::string plugin_flag = "--kubelet-plugins-directory-path";  // for messages
  std::string registrar_flag = "--kubelet-registrar-directory-path";  // for messages
  Duration call_limit = 45s;  // the kubelet's; the driver's deadline is 1 s before it
  Duration patience = 30s;    // how long another plugin on our sockets may take to end
};

// The kubelet's word about us.
struct RegistrationState {
  bool asked = false;       // it has said anything since we started
  bool registered = false;  // its last word
  std::string error;        // why not
};

class Server {
public:
  // `loop`, `time` and `plugin` outlive it.
  Server(asio::io_context& loop, Time& time, Plugin& plugin, ServerConfig config);
  // After stop(), if start() was called.
  ~Server();

  // First the service, then its announcement. Errors: paths too long, directory missing
  // (the flag is named as remedy), a file that is no socket, another plugin that serves one of the
  // sockets and does not end within `patience` (it is not disturbed: of two plugins on one node,
  // the one that works stays).
  Async<Result<void>> start();

  // First the announcement goes, then no new request is taken; requests in work may end for
  // `drain`, then they are cancelled and answered so; then gRPC ends. The loop runs meanwhile. A
  // caller that was cancelled resets its cancellation state first, or this would not even begin.
  // Harmless without start() and when repeated.
  Async<void> stop(Duration drain);

  const RegistrationState& registration() const;
  // Counts changes of registration().
  Event& changes();
  // Why the kubelet cannot reach us or does not want us, or "": for readiness.
  std::string trouble() const;

  std::string service_path() const;
  std::string registrar_path() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nvdra::dra
