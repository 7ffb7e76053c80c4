// The question that holds a channel claim back: is this node ready for the domain?
#pragma once

#include "base/async.hpp"
#include "base/ids.hpp"
#include "roles/kubelet_plugin/trouble.hpp"

#include <optional>

namespace nvdra::roles::kubelet_plugin {

// One implementation per IMEX mode. Called for every round of every held claim; may be in work
// several times at once.
class Gate {
public:
  virtual ~Gate() = default;
  // nullopt: ready. The trouble names what was asked, what was seen and what to check.
  virtual Async<std::optional<Trouble>> closed(DomainUid domain) = 0;
  // Returns when the answer may have changed since it was asked last; the caller bounds it. `seen`
  // is the count of the node's news from before that question.
  virtual Async<Result<void>> wait_change(std::uint64_t seen) = 0;
  // Runs beside a claim that is held for `domain`: keeps the answer fresh. Ends with an error or by
  // cancellation only; called only if follows().
  virtual bool follows() const { return false; }
  virtual Async<Result<void>> follow(DomainUid domain);
};

inline Async<Result<void>> Gate::follow(DomainUid) {
  co_return ok();
}

}  // namespace nvdra::roles::kubelet_plugin
