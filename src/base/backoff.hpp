// Back-off: pure arithmetic of delays.
#pragma once

#include "base/time.hpp"

#include <algorithm>
#include <functional>
#include <random>

namespace nvdra {

// A source of numbers in [0, 1). Tests pass a constant.
using Random = std::function<double()>;

inline Random real_random() {
  return [engine = std::minstd_rand(std::random_device{}())]() mutable {
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
  };
}

// first, first*2, first*4 … up to cap, each times a random factor in [1, 1 + jitter). reset()
// after success; quiet(now) resets when the last failure is older than `reset_after`.
class Backoff {
public:
  struct Shape {
    Duration first = 800ms;
    Duration cap = 30s;
    double jitter = 1.0;
    Duration reset_after = 120s;
  };

  Backoff(Shape shape, Random random) : shape_(shape), random_(std::move(random)) {}

  Duration next(Instant now) {
    if (failures_ > 0 && now - last_ > shape_.reset_after) failures_ = 0;
    last_ = now;
    Duration base = shape_.first;
    for (int i = 0; i < failures_ && base < shape_.cap; ++i) base *= 2;
    ++failures_;
    base = std::min(base, shape_.cap);
    return base + std::chrono::duration_cast<Duration>(base * (shape_.jitter * random_()));
  }
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

private:
  Shape shape_;
  Random random_;
  int failures_ = 0;
  Instant last_{};
};

}  // namespace nvdra
