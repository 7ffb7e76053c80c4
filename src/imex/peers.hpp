// The members of one IMEX domain as nvidia-imex knows them: slots with names. Pure (newer.md A12,
// A13; node-side.md 11.5 to 11.8).
//
// nvidia-imex reads its list of nodes once, at its start, and the place in the list is a member's
// id. So the list never changes: it names every slot of the domain, used or not, and /etc/hosts
// says which pod is behind a name at the moment. An unused slot leads to a loopback address on
// which nobody listens, so that its name is not asked of the cluster's DNS for ever.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::imex {

inline constexpr std::string_view slot_prefix = "compute-domain-daemon-";
inline constexpr std::string_view nobody = "127.0.0.2";  // the address of an unused slot

// The hash that keeps the names of two domains apart: FNV-1a of the uid, 32 bits, in decimal digits
// that are written as letters of a DNS label. At most ten characters: "8585d4965d".
std::string domain_hash(std::string_view domain_uid);

// "compute-domain-daemon-8585d4965d-0000"
std::string slot_name(std::string_view hash, std::int64_t slot);

struct Slot {
  std::string name;
  std::string address;
  bool operator==(const Slot&) const = default;
};

struct Peer {
  NodeName node;
  std::string address;
  std::int64_t slot = -1;
};

struct Slots {
  std::vector<Slot> all;              // one per slot, in order
  std::vector<std::string> findings;  // peers that have no place, each in one sentence
};

// Whether peers can reach somebody there: an IPv4 or IPv6 address, and not the one that means any.
bool is_reachable(const std::string& address);
// "node a has the address \"x\", which is none"
std::string no_address(const Peer& peer);

// Every slot of the domain with the address of the peer that has it. Of two peers on one slot the
// first one keeps it, as on every other node; the other one, and a peer outside the slots or
// without an address, is a finding that names the nodes.
Slots place_peers(const std::vector<Peer>& peers, std::string_view domain_uid, std::int64_t count);

// The nodes file: one line per entry.
std::string render_nodes(const std::vector<std::string>& entries);
// The same for the names of all slots.
std::string render_slot_names(std::string_view domain_uid, std::int64_t count);

// `text` of /etc/hosts with the lines of all slots of any domain replaced by those of `slots`, at
// the end. Every other line is kept byte by byte. Doing it again changes nothing.
std::string edit_hosts(std::string_view text, const std::vector<Slot>& slots);

}  // namespace nvdra::imex
