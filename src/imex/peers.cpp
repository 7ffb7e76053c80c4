#include "imex/peers.hpp"

#include "imex/text.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

namespace nvdra::imex {
namespace {

// An older release of the original appended this line with every change.
constexpr std::string_view old_heading = "# Compute Domain Daemon mappings";

// The digits as Kubernetes makes random-looking names of them: no vowels, nothing to misread.
constexpr std::string_view safe_digits = "456789bcdf";

std::string_view next_word(std::string_view& line) {
  constexpr std::string_view blank = " \t\r";
  const auto first = line.find_first_not_of(blank);
  if (first == std::string_view::npos) return line = {};
  line.remove_prefix(first);
  const std::string_view word = line.substr(0, line.find_first_of(blank));
  line.remove_prefix(word.size());
  return word;
}

bool is_slot_line(std::string_view line) {
  if (trim(line) == old_heading) return true;
  line = line.substr(0, line.find('#'));
  if (next_word(line).empty()) return false;  // the address
  for (auto name = next_word(line); !name.empty(); name = next_word(line))
    if (name.starts_with(slot_prefix)) return true;
  return false;
}

}  // namespace

std::string domain_hash(std::string_view domain_uid) {
  std::uint32_t hash = 2166136261u;
  for (const char c : domain_uid) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  std::string text = std::to_string(hash);
  for (char& digit : text) digit = safe_digits[static_cast<std::size_t>(digit - '0')];
  return text;
}

std::string slot_name(std::string_view hash, std::int64_t slot) {
  return fmt::format("{}{}-{:04}", slot_prefix, hash, slot);
}

bool is_reachable(const std::string& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return four.s_addr != INADDR_ANY;
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.c_str(), &six) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&six);
}

std::string no_address(const Peer& peer) {
  return fmt::format("node {} has the address \"{}\", which is none", peer.node.value,
                     excerpt(peer.address));
}

Slots place_peers(const std::vector<Peer>& peers, std::string_view domain_uid, std::int64_t count) {
  Slots slots;
  const std::string hash = domain_hash(domain_uid);
  std::vector<const Peer*> holders(static_cast<std::size_t>(count), nullptr);
  for (std::int64_t slot = 0; slot < count; ++slot)
    slots.all.push_back({slot_name(hash, slot), std::string(nobody)});
  for (const Peer& peer : peers) {
    if (peer.slot < 0 || peer.slot >= count) {
      slots.findings.push_back(fmt::format("node {} has index {}, which is outside 0 to {}",
                                           peer.node.value, peer.slot, count - 1));
      continue;
    }
    const auto at = static_cast<std::size_t>(peer.slot);
    if (holders[at]) {
      slots.findings.push_back(fmt::format("nodes {} and {} both have index {}",
                                           holders[at]->node.value, peer.node.value, peer.slot));
      continue;
    }
    holders[at] = &peer;
    if (is_reachable(peer.address)) {
      slots.all[at].address = peer.address;
    } else {
      slots.findings.push_back(no_address(peer));
    }
  }
  return slots;
}

std::string render_nodes(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) text.append(entry).append("\n");
  return text;
}

std::string render_slot_names(std::string_view domain_uid, std::int64_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(count));
  const std::string hash = domain_hash(domain_uid);
  for (std::int64_t slot = 0; slot < count; ++slot) names.push_back(slot_name(hash, slot));
  return render_nodes(names);
}

std::string edit_hosts(std::string_view text, const std::vector<Slot>& slots) {
  std::string edited;
  while (const auto line = next_line(text))
    if (!is_slot_line(*line)) edited.append(*line).append("\n");
  for (const Slot& slot : slots) edited.append(slot.address + "\t" + slot.name + "\n");
  return edited;
}

}  // namespace nvdra::imex
