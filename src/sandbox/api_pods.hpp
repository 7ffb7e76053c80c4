// Logs and exec of pods: the API server passes them to whoever runs the pods.
#pragma once

#include "sandbox/api_http.hpp"
#include "sandbox/api_route.hpp"
#include "sandbox/store_registry.hpp"

namespace nvdra::sandbox {

struct LogQuery {
  std::string container;  // "" = the only one
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<std::int64_t> tail_lines = {};
};

struct ExecQuery {
  std::string container;  // "" = the first one
  std::vector<std::string> command;
  bool stdin_open = false;
  bool tty = false;
};

// Where a pod's output goes. One coroutine at a time may write; an error means that the reader
// has gone.
class PodOutput {
public:
  virtual ~PodOutput() = default;
  virtual Async<Result<void>> write_out(std::string bytes) = 0;
  virtual Async<Result<void>> write_err(std::string bytes) = 0;
  // The next bytes of stdin; empty at its end. May be awaited while another coroutine writes.
  virtual Async<Result<std::string>> read_in() = 0;
};

// Implemented by the kubelets. Both are called on the loop, with the pod as it is now; both end
// when the work has ended or `output` fails. Errors are shown to the user.
class PodRuntime {
public:
  virtual ~PodRuntime() = default;
  virtual Async<Result<void>> logs(ItemPtr pod, LogQuery query, PodOutput& output) = 0;
  // The command's exit status.
  virtual Async<Result<int>> exec(ItemPtr pod, ExecQuery query, PodOutput& output) = 0;
};

// pods/log and pods/exec.
bool is_pod_stream(const Route& route);
Async<Result<void>> serve_pod_stream(Connection& connection, Registry& registry, PodRuntime* pods,
                                     Route route, Request request);

}  // namespace nvdra::sandbox
