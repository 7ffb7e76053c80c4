// Leader election over a coordination.k8s.io/v1 Lease, compatible with client-go's algorithm
// (cluster-side.md 4.3 [KEEP]); released only after the work has stopped (W-C10).
#pragma once

#include "base/backoff.hpp"
#include "k8s/client.hpp"

#include <functional>

namespace nvdra::k8s {

// The record as it stands in the Lease's spec.
struct LeaseRecord {
  std::string holder;
  std::chrono::seconds duration{0};
  std::string acquire_time;  // RFC 3339 with microseconds, as written
  std::string renew_time;
  std::int64_t transitions = 0;
  bool operator==(const LeaseRecord&) const = default;
};

// A record and the local moment at which it was last seen to change. The times inside the record
// are other machines' clocks and are not believed.
struct Observed {
  LeaseRecord record;
  Instant since;
};

enum class Move { renew, take, wait };
// Pure. renew: we hold it; take: nobody holds it, or its holder has been silent for the record's
// own duration; wait: somebody holds it.
Move next_move(const Observed& observed, std::string_view identity, Instant now);

struct LeaseConfig {
  ObjectKey key;
  std::string identity;  // "<pod name>-<uuid>"
  Duration duration = 15s;
  Duration renew_deadline = 10s;
  Duration retry_period = 2s;
};
// duration > renew_deadline; renew_deadline > 1.2 × retry_period; all > 0.
Result<void> check(const LeaseConfig& config);

class LeaderElection {
public:
  LeaderElection(Client& client, Time& time, Random random, LeaseConfig config);

  // Waits for leadership, then runs `work` while renewing. Returns when `work` has ended, or after
  // leadership was lost (an error that says so; `work` has been cancelled and has ended), or when
  // cancelled. In every case the lease is released after `work` has ended (limit: renew_deadline).
  Async<Result<void>> run(std::function<Async<Result<void>>()> work);

  bool leading() const { return leading_; }
  const std::string& holder() const { return observed_.record.holder; }

private:
  Async<Result<bool>> try_once();  // true: ours
  Async<Result<void>> renew_until_lost();
  Async<void> release();

  Client& client_;
  Time& time_;
  Random random_;
  LeaseConfig config_;
  Observed observed_{};
  std::string version_;
  Json lease_;
  bool leading_ = false;
};

}  // namespace nvdra::k8s
