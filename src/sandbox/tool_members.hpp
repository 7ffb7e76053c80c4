// The members of an IMEX domain as nvidia-imex reads them: the nodes file, names, and which line is
// this node. Pure but for the reading of the files.
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nvdra::sandbox {

// One address or host name per line; the index is the node's id.
std::vector<std::string> parse_nodes(std::string_view text);
// "Failed to read node configuration file …" when it cannot be read or names nobody.
Result<std::vector<std::string>> read_nodes(const std::string& path);

// Equal for equal lists only: daemons with different ones refuse each other.
std::string nodes_key(const std::vector<std::string>& nodes);

bool is_address(std::string_view text);

// The address of `node`: itself when it is one, else the first one that `hosts` (/etc/hosts) has
// for that name; "" if none.
std::string address_of(std::string_view node, std::string_view hosts);
// The same with `root`/etc/hosts if that exists, else /etc/hosts. Reads the file at every call.
std::string address_of_host(std::string_view node, const std::string& root);

// Addresses of this machine's interfaces.
std::vector<std::string> local_addresses();

struct Self {
  std::size_t index;
  std::string address;
};
// The line that is this node: the first whose address is one of `preferred` (what the configuration
// binds to), else the first whose address is `local`. Nothing: "No matching network interface
// found …".
std::optional<Self> find_self(const std::vector<std::string>& addresses,
                              const std::vector<std::string>& preferred,
                              const std::vector<std::string>& local);

}  // namespace nvdra::sandbox
