#include "sandbox/tool_members.hpp"

#include "base/files.hpp"
#include "imex/text.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace nvdra::sandbox {
namespace {

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  else if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (!bytes || !::inet_ntop(address->sa_family, bytes, text.data(), text.size())) return {};
  return text.data();
}

std::optional<std::string_view> next_word(std::string_view& line) {
  line = imex::trim(line);
  if (line.empty()) return std::nullopt;
  const auto end = line.find_first_of(" \t");
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

std::vector<std::string> parse_nodes(std::string_view text) {
  std::vector<std::string> nodes;
  while (const auto line = imex::next_line(text)) {
    const std::string_view node = imex::trim(*line);
    if (!node.empty() && !node.starts_with('#')) nodes.emplace_back(node);
  }
  return nodes;
}

Result<std::vector<std::string>> read_nodes(const std::string& path) {
  const std::string doing = "Failed to read node configuration file " + path;
  Result<std::string> text = read_file(path);
  if (!text) return std::move(text).failure().during(doing);
  std::vector<std::string> nodes = parse_nodes(*text);
  if (nodes.empty()) return refuse(doing + ": it names no node");
  return nodes;
}

std::string nodes_key(const std::vector<std::string>& nodes) {
  std::uint64_t hash = 14695981039346656037ULL;
  const auto add = [&](char c) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  };
  for (const std::string& node : nodes) {
    for (const char c : node) add(c);
    add('\n');
  }
  return fmt::format("{:016x}", hash);
}

bool is_address(std::string_view text) {
  std::array<unsigned char, 16> bytes{};
  const std::string copy(text);
  return ::inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1;
}

std::string address_of(std::string_view node, std::string_view hosts) {
  if (is_address(node)) return std::string(node);
  while (const auto whole = imex::next_line(hosts)) {
    std::string_view line = whole->substr(0, whole->find('#'));
    const auto address = next_word(line);
    while (const auto name = next_word(line))
      if (*name == node && is_address(*address)) return std::string(*address);
  }
  return {};
}

std::string address_of_host(std::string_view node, const std::string& root) {
  if (is_address(node)) return std::string(node);
  const std::string own = root + "/etc/hosts";
  const Result<std::string> hosts =
      read_file(::access(own.c_str(), R_OK) == 0 ? own : std::string("/etc/hosts"));
  return hosts ? address_of(node, *hosts) : std::string{};
}

std::vector<std::string> local_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next)
    if (entry->ifa_addr && (entry->ifa_flags & IFF_UP) != 0)
      if (std::string text = text_of(entry->ifa_addr); !text.empty())
        found.push_back(std::move(text));
  ::freeifaddrs(list);
  return found;
}

std::optional<Self> find_self(const std::vector<std::string>& addresses,
                              const std::vector<std::string>& preferred,
                              const std::vector<std::string>& local) {
  for (const auto* candidates : {&preferred, &local})
    for (std::size_t i = 0; i < addresses.size(); ++i)
      if (!addresses[i].empty() &&
          std::ranges::find(*candidates, addresses[i]) != candidates->end())
        return Self{i, addresses[i]};
  return std::nullopt;
}

}  // namespace nvdra::sandbox
