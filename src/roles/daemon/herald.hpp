// Herald: what the daemon says about itself on its own pod.
//   * the label with its clique, also when that is empty: the controller tells "no fabric" from
//   "not
//     started yet" by it (node-side.md 11.3 step 3);
//   * an annotation with the reason while this member is not ready for longer than a usual start
//     takes, and an Event of the same words. The controller repeats it in the ComputeDomain.
// A start without trouble costs one request.
#pragma once

#include "base/backoff.hpp"
#include "base/event.hpp"
#include "k8s/client.hpp"
#include "k8s/events.hpp"
#include "roles/daemon/config.hpp"
#include "roles/daemon/verdict.hpp"

#include <functional>

namespace nvdra::roles::daemon {

class Herald {
public:
  Herald(asio::any_io_executor executor, k8s::Client& client, Time& time, const Config& config);

  // Labels the pod, with as many tries as it takes.
  Async<Result<void>> label();
  // label(), then follows `verdict` until cancelled. `news` is notified when it may have changed.
  Async<Result<void>> run(Event& news, std::function<Verdict()> verdict);
  // Sends the Events, until cancelled.
  Async<Result<void>> send_events() { return events_.run(); }

private:
  Async<void> follow(Event* news, std::function<Verdict()> verdict);
  Async<void> write(std::string reason);
  Async<Result<k8s::Object>> patch_pod(Json metadata);

  k8s::Client& client_;
  Time& time_;
  const Config& config_;
  k8s::EventRecorder events_;
  std::string written_;  // the annotation as it stands
};

// The annotation: the state word, with the reason where that says more; "" when ready.
std::string told(const Verdict& verdict);
// How long a verdict must hold before it is told.
Duration patience_with(const Verdict& verdict);

}  // namespace nvdra::roles::daemon
