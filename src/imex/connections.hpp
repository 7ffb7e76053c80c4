// Connections: are this member and its peers connected, as their states promise? `nvidia-imex-ctl
// -q` says READY whether they are or not, and then imports between two nodes fail in the workload
// (imex-facts.md 4; reports 47, 95).
//   * `-N -j` shows every configured member. The entry of one that was not reached is made up from
//     the nodes file, so nothing follows from it: a peer that is away holds nobody up. A peer that
//     says READY itself, and is not connected with this member in both directions, is a fault. So
//     is one that this member refuses ("MISMATCH": another nodes file, another version): it is not
//     reached, but it is there, and stays refused until nvidia-imex is restarted.
//   * A connection takes its time after a start, a crash or a new address: what is seen counts only
//     if each answer has shown it for `settled_after`.
//   * The tool asks the peers, and may hang for it. It is asked rarely and within a limit; without
//     an answer nothing is judged.
#pragma once

#include "base/event.hpp"
#include "base/result.hpp"
#include "imex/child_state.hpp"

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::imex {

constexpr Duration settled_after = 30s;
constexpr Duration first_look = 5s;      // from READY to the first question
constexpr Duration between_looks = 10s;  // at least
constexpr Duration calm_look = 60s;      // while nothing is wrong and nothing changes

// What the tool says of one member.
struct DomainMember {
  std::string state;                                // "READY", "UNAVAILABLE", …
  std::string host;                                 // its entry of the nodes file
  std::map<std::int64_t, std::string> connections;  // id of the other one → "CONNECTED", …
};
using DomainView = std::map<std::int64_t, DomainMember>;  // by id

// The JSON of `nvidia-imex-ctl -N -j`. The error says what is missing.
Result<DomainView> parse_domain(std::string_view text);

struct Unconnected {
  std::int64_t id = -1;
  std::string host;
  std::string word;  // of the direction that is not connected: "NEVER_CONNECTED"
  auto operator<=>(const Unconnected&) const = default;
  bool refused() const { return word.find("MISMATCH") != std::string::npos; }
};
// The faults that member `own` has with its peers, in the order of their ids.
std::vector<Unconnected> unconnected(const DomainView& view, std::int64_t own);

// Runs `nvidia-imex-ctl -c FILE -N -j`. Errors: it failed, gave no answer in time, or no JSON.
Async<Result<DomainView>> ask_domain(Question question, Time& time);

class Connections {
public:
  struct Parts {
    Time& time;
    Event& news;  // of the members and of nvidia-imex
    std::function<Async<Result<DomainView>>()> ask;
    // This member's id while there is something to look at: it is READY and has peers.
    std::function<std::optional<std::int64_t>()> own;
    std::function<void()> changed;  // faults() has
  };
  explicit Connections(Parts parts);

  // The peers that are known not to be connected.
  const std::vector<Unconnected>& faults() const { return faults_; }

  // Until cancelled.
  Async<Result<void>> run();

private:
  struct Doubt {
    Unconnected what;
    Instant since;
  };

  Async<void> look(std::int64_t own);
  void see(const std::vector<Unconnected>& seen);
  void conclude();
  void forget();

  Parts parts_;
  std::vector<Doubt> doubts_;  // of the last answer
  std::vector<Unconnected> faults_;
  std::string trouble_;  // why there was no answer, as it was logged
};

}  // namespace nvdra::imex
