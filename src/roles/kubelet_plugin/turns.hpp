// Turns: what changes one claim happens one after the other; different claims do not wait for each
// other. Held for files and the checkpoint only, never while waiting for readiness (18.3 no. 42).
#pragma once

#include "base/event.hpp"
#include "base/ids.hpp"

#include <set>

namespace nvdra::roles::kubelet_plugin {

class Turns {
public:
  explicit Turns(asio::any_io_executor executor) : freed_(executor) {}

  // Ends with its scope.
  class Turn {
  public:
    Turn(Turns& turns, ClaimUid uid) : turns_(&turns), uid_(std::move(uid)) {}
    Turn(Turn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), uid_(std::move(other.uid_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_) turns_->end(uid_);
    }

  private:
    Turns* turns_;
    ClaimUid uid_;
  };

  Async<Turn> take(ClaimUid uid) {
    while (taken_.contains(uid)) {
      auto seen = freed_.count();
      co_await freed_.wait(seen);
    }
    taken_.insert(uid);
    co_return Turn(*this, std::move(uid));
  }

private:
  void end(const ClaimUid& uid) {
    taken_.erase(uid);
    freed_.notify();
  }

  Event freed_;
  std::set<ClaimUid> taken_;
};

}  // namespace nvdra::roles::kubelet_plugin
