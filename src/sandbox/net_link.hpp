// Network devices by rtnetlink: what a container network plugin does with `ip`. Every function
// works in the network namespace in which its socket was opened.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace nvdra::sandbox {

// A network namespace that lives as long as somebody has it open, and a socket to set it up with.
struct NetSpace {
  Fd space;
  Fd link;
};

// A new one, with its loopback interface up. Its owner is this process's user namespace. An error
// when this process may not have one.
Result<NetSpace> make_net_space();
// Runs `work` in that namespace, in a thread of its own; this thread stays where it is.
Result<Fd> in_net_space(const Fd& space, const std::function<Result<Fd>()>& work);

// A bridge that is up.
Result<void> add_bridge(const NetSpace& at, const std::string& name);
// Two ends of a cable: `name` here, on the bridge and up; `far_name` in `far`.
Result<void> add_cable(const NetSpace& at, const std::string& bridge, const std::string& name,
                       const NetSpace& far, const std::string& far_name);
Result<void> set_up(const NetSpace& at, const std::string& name);
// An IPv4 address such as "10.244.1.2" with a prefix of so many bits.
Result<void> add_address(const NetSpace& at, const std::string& name, const std::string& address,
                         unsigned bits);
Result<void> add_default_route(const NetSpace& at, const std::string& gateway);

}  // namespace nvdra::sandbox
