// Is this member ready, and if not, why? One answer for the entry in the list of members, the
// probes, the metrics and the people. Pure.
#pragma once

#include "imex/child_state.hpp"
#include "imex/connections.hpp"
#include "roles/daemon/moves.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace nvdra::roles::daemon {

// What the parts of the daemon know at one moment.
struct Facts {
  std::string membership_trouble = {};       // "" = the entry is there and ours
  std::string files_trouble = {};            // "" = written
  std::optional<std::int64_t> index = {};    // of the own entry as it was seen last
  std::optional<std::int64_t> applied = {};  // the index that the files and the child are for
  bool child_up = false;
  int crashes = 0;                              // in a row
  std::string child_end = {};                   // how the child ended last: "exit status 1"
  std::string child_trouble = {};               // what its log said about it
  std::optional<std::int64_t> identified = {};  // the slot that the child believes to be its own
  const imex::Answer* answer = nullptr;         // nullptr = the child has not been asked yet
  std::string unconnected = {};                 // connection_trouble()
};

struct Verdict {
  bool ready = false;
  std::string state = {};   // a word: READY, JOINING, FILES, STARTING, CRASHING, INIT_GPU, …
  std::string reason = {};  // one sentence; "" when ready
  bool operator==(const Verdict&) const = default;
};

// One sentence about peers that nvidia-imex is not connected with, or refuses; "" without any. Only
// members of the circle count, and are named by their nodes.
std::string connection_trouble(const std::vector<imex::Unconnected>& faults, const Circle& circle);

// Ready: a member with its mapping applied, the child alive and known to be READY, the child's own
// idea of its slot the right one (report 46), and no READY peer without a connection (report 47).
Verdict judge(const Facts& facts);

}  // namespace nvdra::roles::daemon
