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
  // Returns when the answer may have changed since it was asked last; the caller bounds it.
  virtual Async<Result<void>> wait_change() = 0;
};

}  // namespace nvdra::roles::kubelet_plugin
