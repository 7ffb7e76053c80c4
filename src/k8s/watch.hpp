// Watching one resource type: events as they come over one connection.
#pragma once

#include "k8s/object.hpp"
#include "k8s/status.hpp"
#include "k8s/transport.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace nvdra::k8s {

struct WatchOptions {
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version;
  // timeoutSeconds; the idle limit is this plus a margin. Below the idle limits of the usual load
  // balancers (240 s), which forget connections silently.
  std::chrono::seconds server_limit{180};
};

struct WatchEvent {
  enum class Kind { added, modified, deleted, bookmark, error };
  Kind kind;
  Object object;  // of an error: the Status
};

// One watch connection. next(): the next event; nullopt when the server ended the watch in good
// order. Errors: gone (list again), timed_out (silent connection), disconnected, other ERROR events
// by their code; malformed_answer: one event could not be understood, next() may be called again.
// ERROR events are never handed out as events.
class Watch {
public:
  virtual ~Watch() = default;
  virtual Async<Result<std::optional<WatchEvent>>> next() = 0;
};

// The watch whose answer has begun; `asked` begins its errors' texts.
std::unique_ptr<Watch> make_watch(std::unique_ptr<BodyStream> stream, ResourceType type,
                                  std::string asked, Duration idle);

}  // namespace nvdra::k8s
