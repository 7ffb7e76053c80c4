// The controllers of the sandbox's cluster, in the same process as the Registry: namespaces,
// service accounts, garbage collection, claims from templates and their release, the scheduler with
// its device allocator, DaemonSets, ReplicaSets, Deployments, Jobs, pods of removed nodes, and the
// end of old Events.
// They see changes through the feed and write to the Registry directly, so HTTP faults do not
// touch them.
#pragma once

#include "base/event.hpp"
#include "sandbox/store_registry.hpp"

#include <memory>
#include <vector>

namespace nvdra::sandbox {

class Controller;

class Controllers {
public:
  // Begins with what is there.
  Controllers(asio::any_io_executor executor, Registry& registry);
  ~Controllers();

  // Works until cancelled.
  Async<Result<void>> run();
  // Does everything that is to be done now; for tests without a running loop.
  void settle();

private:
  bool work();

  Event changed_;
  std::vector<std::unique_ptr<Controller>> controllers_;
  std::shared_ptr<Feed::Handler> handler_;
};

}  // namespace nvdra::sandbox
