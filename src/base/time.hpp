// Time as a parameter: the monotonic clock and sleeping. Tests use FakeTime (test/fake/time.hpp).
#pragma once

#include "base/async.hpp"

#include <chrono>

namespace nvdra {

using Clock = std::chrono::steady_clock;
using Instant = Clock::time_point;
using Duration = Clock::duration;
using WallClock = std::chrono::system_clock;

using namespace std::chrono_literals;

class Time {
public:
  virtual ~Time() = default;
  // The monotonic clock: for waiting and for durations.
  virtual Instant now() const = 0;
  // The calendar: only for what is written into objects and log lines.
  virtual WallClock::time_point wall() const = 0;
  // Returns after `length`; throws operation_aborted when cancelled.
  virtual Async<void> sleep(Duration length) = 0;
};

class RealTime final : public Time {
public:
  Instant now() const override { return Clock::now(); }
  WallClock::time_point wall() const override { return WallClock::now(); }
  Async<void> sleep(Duration length) override;
};

// "2026-01-02T15:04:05Z" and "2026-01-02T15:04:05.123456Z" (UTC), as Kubernetes writes them.
std::string rfc3339(WallClock::time_point when);
std::string rfc3339_micro(WallClock::time_point when);

}  // namespace nvdra
