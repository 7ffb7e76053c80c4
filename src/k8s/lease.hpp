// Leader election over a coordination.k8s.io/v1 Lease, compatible with client-go's algorithm
// (cluster-side.md 4.3 [KEEP]); released only after the work has stopped (W-C10).
//   * Acquire: try at once, then every retry period times [1, 2.2), for ever.
//   * Renew: every retry period; a renewal that has not succeeded within the renew deadline, or
//     finds another holder, is the loss of leadership. One attempt that hangs is given up after
//     half the deadline, so that it does not use all of it.
//   * What else is in the Lease (labels, fields of newer versions) is kept.
#pragma once

#include "base/backoff.hpp"
#include "k8s/client.hpp"

#include <functional>
#include <optional>

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
LeaseRecord record_of(const Json& lease);
// Writes `record` into the spec of `lease` and leaves the rest.
void set_record(Json& lease, const LeaseRecord& record);

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
// duration > renew_deadline; renew_deadline > 1.2 × retry_period; all > 0; duration ≥ 1 s.
Result<void> check(const LeaseConfig& config);

class LeaderElection {
public:
  LeaderElection(Client& client, Time& time, Random random, LeaseConfig config);

  // Waits for leadership, then runs `work` while renewing. Returns when `work` has ended, with its
  // result, or after leadership was lost (an error that says so, see lost(); `work` has been
  // cancelled and has ended). Cancelled, it throws operation_aborted when all is done. In every
  // case the lease is released after `work` has ended (limit: renew_deadline). Runs once.
  Async<Result<void>> run(std::function<Async<Result<void>>()> work);

  bool leading() const { return leading_; }
  // run() ended, or is about to end, because leadership was lost.
  bool lost() const { return lost_.has_value(); }
  // As last seen; "" = nobody, or not known yet.
  const std::string& holder() const { return observed_.record.holder; }

private:
  enum class Tried { ours, held_by_another };
  Async<void> acquire();
  Async<void> lead(std::function<Async<Result<void>>()> work, Result<void>& ended);
  Async<Result<void>> renew_until_lost();
  Async<Result<void>> renew_once();
  Async<Result<Tried>> try_once();
  Async<Result<void>> create();
  Async<Result<void>> write(LeaseRecord record);
  Async<Result<void>> read();
  Async<void> give_back();
  Async<Result<void>> release();
  void complain(const Error& error);
  LeaseRecord ours() const;
  void observe(const Object& lease);

  Client& client_;
  Time& time_;
  Random random_;
  LeaseConfig config_;
  Observed observed_{};
  Json lease_;  // as last answered by the server
  bool leading_ = false;
  bool maybe_ours_ = false;  // a write of ours has or may have reached the server
  std::string trouble_;      // the last failed attempt
  std::optional<Failure> lost_;
};

}  // namespace nvdra::k8s
