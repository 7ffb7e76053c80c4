// The inside of checkpoint.cpp and checkpoint_parse.cpp: text of one entry and back.
#pragma once

#include "dra/checkpoint.hpp"

namespace nvdra::dra {

// Access to a Checkpoint's private parts for the two of them.
struct CheckpointText {
  static std::string render(const Checkpoint& checkpoint);
  static Result<Checkpoint> parse(std::string_view text);
};

// A claim as text of both layouts, without its key yet. `claim.status` becomes canonical.
Checkpoint::Entry make_entry(CheckpointClaim claim);
// `quoted` as it will stand in the file.
void set_key(Checkpoint::Entry& entry, std::string_view quoted);

std::string_view state_name(ClaimState state);  // "" of unknown
ClaimState state_named(std::string_view name);

}  // namespace nvdra::dra
