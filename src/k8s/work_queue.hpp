// WorkQueue: keys to be worked, each by at most one worker at a time.
//   * A key queued twice before it is worked is worked once.
//   * A key queued while it runs is queued again when it finishes.
//   * A delayed key that is queued without delay runs at once, and its delay is over; of two delays
//     the earlier wins. A delay for a key that is queued or running already counts from now on.
//   * Keys are handed out in the order in which they were queued or became due.
#pragma once

#include "base/event.hpp"
#include "base/time.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace nvdra::k8s {

class WorkQueue {
public:
  WorkQueue(asio::any_io_executor executor, Time& time);

  void add(std::string key);
  void add_after(std::string key, Duration delay);
  // The next key; waits. The caller must call done(key) afterwards.
  Async<std::string> next();
  void done(const std::string& key);

  std::size_t waiting() const { return ready_.size(); }
  std::size_t delayed() const { return delayed_.size(); }
  bool idle() const { return ready_.empty() && running_.empty() && delayed_.empty(); }

private:
  void release_due();
  std::optional<Duration> until_due() const;

  Time& time_;
  Event changed_;
  std::deque<std::string> ready_;
  std::set<std::string> dirty_;  // in ready_, or to be put there when it has finished
  std::set<std::string> running_;
  std::map<std::string, Instant> delayed_;
  std::set<std::pair<Instant, std::string>> due_;  // delayed_, by time
};

}  // namespace nvdra::k8s
