// Membership: keeps this daemon's entry in the list of members, and knows the others.
//
// N daemons that join together need a number of requests that grows with N, not with its square:
// the list is only written from what the watch has shown last, a refused write is
// tried again after a random pause that grows with each refusal, and the state between is taken
// from the watch, not asked for. Making the clique and joining it is one request. Whoever undoes
// these writes does not make it write without a pause.
#pragma once

#include "base/backoff.hpp"
#include "k8s/informer.hpp"
#include "roles/daemon/moves.hpp"

#include <functional>
#include <optional>

namespace nvdra::roles::daemon {

class Membership {
public:
  struct Parts {
    asio::any_io_executor executor;
    k8s::Client& client;
    Time& time;
    Random random;
    Event& news;                  // notified when the view has changed; awaited for `ready`
    std::function<bool()> ready;  // what the own entry shall say
  };

  Membership(Parts parts, Place place, Self self);

  // Watches and writes until cancelled.
  Async<Result<void>> run();

  // Removes the entry, for at most `limit`; after run() has ended. True: it was there. Errors say
  // what is left behind.
  Async<Result<bool>> leave(Duration limit);

  // The object as it was seen last; nullptr before that and when it is gone.
  k8s::ObjectPtr object() const;
  const Place& place() const { return place_; }
  const Self& self() const { return self_; }
  // Why this daemon is no member at the moment, or cannot say so; "" = it is one.
  const std::string& trouble() const { return trouble_; }
  std::uint64_t refused() const { return refused_; }  // writes that came too late

private:
  Async<Result<void>> keep();
  Async<bool> gave_way(int crowd, k8s::ObjectPtr seen);
  Async<void> perform(Move move, k8s::ObjectPtr seen);
  Async<void> keep_pace();
  Async<Result<k8s::Object>> send(const Move& move);
  Async<void> learn_from(const Error& error, k8s::ObjectPtr seen);
  Async<void> catch_up(k8s::ObjectPtr seen);
  Async<void> look();
  Async<Result<void>> newer_than(k8s::ObjectPtr seen);
  Async<void> wait(const Stuck* stuck, std::uint64_t news);
  Async<Result<bool>> keep_leaving();
  Async<Result<bool>> take_out();
  void set_trouble(std::string trouble);

  Parts parts_;
  Place place_;
  Self self_;
  k8s::Informer informer_;
  Backoff backoff_;
  Backoff pace_;  // of writes that succeeded
  std::string trouble_ = "the list of members has not been read yet";
  bool joined_ = false;
  std::optional<Instant> displaced_;  // since when the entry has been another pod's
  bool gave_way_ = false;             // to others that start at the same time
  int contention_ = 0;                // writes refused in a row
  std::uint64_t refused_ = 0;
  std::string write_trouble_;  // of the last write that failed
  std::string leave_trouble_;
};

// The random pause after the n-th refusal in a row, 0 <= random < 1.
Duration contention_pause(int refusals, double random);

}  // namespace nvdra::roles::daemon
