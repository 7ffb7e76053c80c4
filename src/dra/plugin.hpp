// What a driver implements, and what the kubelet's side (server.hpp) promises it.
#pragma once

#include "base/async.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"

#include <string>
#include <vector>

namespace nvdra::dra {

// A claim as the kubelet names it. The UID is what counts: a name may belong to another claim by
// now. The UID is safe as a part of a file name; nothing else has been checked.
struct ClaimRef {
  std::string space;
  std::string name;
  ClaimUid uid;

  std::string text() const { return space + "/" + name + ":" + uid.value; }
};

// One device of a prepared claim, as the kubelet hands it on to the container runtime.
struct PreparedDevice {
  std::vector<std::string> requests;  // as in the allocation; a "/subrequest" is cut by the server
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_ids;
  bool operator==(const PreparedDevice&) const = default;
};

using Prepared = std::vector<PreparedDevice>;

// When a claim must have been answered. It lies a little before the moment at which the kubelet
// stops listening (45 s after its call, or its own deadline if that is nearer).
using Deadline = Instant;

// The driver.
//
// Who calls: the kubelet, through the server, on the loop. Once per claim of a pod that is about to
//   start or has ended, again after every error (10 to 90 s later), again after the kubelet has
//   restarted, and at any time for a claim that was prepared long ago.
// Order: none. Every claim of a request is a coroutine of its own, and requests run side by side:
//   a channel claim waits for a daemon whose claim is prepared on the same node meanwhile. The same
//   claim may be in work twice at once, also prepare and unprepare: the driver must sort that out.
// Time: answer before `deadline`, with the true reason if the claim is not ready. What is later is
//   cancelled, and answered with a sentence that says only that. How often to look until then is
//   the driver's business. A call is also cancelled when the kubelet has gone away and when the
//   server stops; cancellation arrives as operation_aborted at the next wait, as everywhere.
// Result: one per claim, never one for all. An error's text is what the user reads in the event of
//   his pod; it voids this claim's devices only, and the kubelet calls again.
class Plugin {
public:
  virtual ~Plugin() = default;

  // Makes the devices of `claim` ready. Idempotent: a claim that is ready gives the same devices.
  // Nothing was checked: the claim may be gone, replaced, not allocated, or another driver's.
  virtual Async<Result<Prepared>> prepare(ClaimRef claim, Deadline deadline) = 0;

  // Undoes prepare. Idempotent, and a success for a claim that was never prepared. The claim, its
  // namespace and everything it refers to may be gone: only what prepare wrote down can be used.
  virtual Async<Result<void>> unprepare(ClaimRef claim, Deadline deadline) = 0;
};

}  // namespace nvdra::dra
