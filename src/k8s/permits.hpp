// A bound on things done at once, first come, first served.
#pragma once

#include "base/async.hpp"

#include <boost/asio/steady_timer.hpp>

#include <list>

namespace nvdra::k8s {

class Permits {
public:
  // The right to do one thing, given back at the end of its life.
  class Permit {
  public:
    Permit() = default;
    explicit Permit(Permits* from) : from_(from) {}
    Permit(Permit&& other) noexcept : from_(std::exchange(other.from_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(from_, other.from_);
      return *this;
    }
    ~Permit() {
      if (from_) from_->give_back();
    }

  private:
    Permits* from_ = nullptr;
  };

  explicit Permits(int count) : free_(count) {}

  // Waits for its turn; throws operation_aborted when cancelled.
  Async<Permit> take();
  std::size_t waiting() const { return waiting_.size(); }

private:
  struct Waiter {
    asio::steady_timer bell;
    bool granted = false;
  };
  void give_back();

  int free_;
  std::list<Waiter*> waiting_;
};

}  // namespace nvdra::k8s
