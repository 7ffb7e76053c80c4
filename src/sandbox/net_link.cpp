#include "sandbox/net_link.hpp"

#include "base/try.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

namespace nvdra::sandbox {
namespace {

// A netlink message under construction: header, body, attributes (some of them nested).
class Message {
public:
  template <class Body>
  Message(std::uint16_t type, std::uint16_t flags, const Body& body) {
    const nlmsghdr header{
        .nlmsg_len = 0,
        .nlmsg_type = type,
        .nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags),
        .nlmsg_seq = 1,
        .nlmsg_pid = 0};
    put(&header, sizeof header);
    put(&body, sizeof body);
  }

  void put(const void* from, std::size_t size) {
    bytes_.append(static_cast<const char*>(from), size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  void attribute(std::uint16_t type, std::string_view value) {
    const rtattr head{.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(value.size())),
                      .rta_type = type};
    put(&head, sizeof head);
    put(value.data(), value.size());
  }
  void text(std::uint16_t type, const std::string& value) {
    attribute(type, std::string_view(value.c_str(), value.size() + 1));
  }
  void number(std::uint16_t type, std::uint32_t value) {
    attribute(type, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  // An attribute whose content is what `inner` adds.
  void nested(std::uint16_t type, const std::function<void()>& inner) {
    const std::size_t begin = bytes_.size();
    attribute(type, {});
    inner();
    const auto size = static_cast<std::uint16_t>(bytes_.size() - begin);
    std::memcpy(bytes_.data() + begin, &size, sizeof size);
  }

  Result<void> send(const Fd& link, std::string_view doing) {
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &size, sizeof size);
    if (::send(link.get(), bytes_.data(), bytes_.size(), 0) < 0) return errno_failure(doing);
    alignas(nlmsghdr) std::array<char, 4096> answer{};
    const ssize_t read = ::recv(link.get(), answer.data(), answer.size(), 0);
    if (read < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(nlmsgerr)))
      return errno_failure(doing, read < 0 ? errno : EPROTO);
    nlmsgerr told{};
    std::memcpy(&told, answer.data() + sizeof(nlmsghdr), sizeof told);
    if (told.error != 0) return errno_failure(doing, -told.error);
    return ok();
  }

private:
  std::string bytes_;
};

constexpr std::uint16_t make_new = NLM_F_CREATE | NLM_F_EXCL;

// The number of an interface in the socket's namespace.
Result<int> index_of(const NetSpace& at, const std::string& name) {
  ifreq asked{};
  name.copy(asked.ifr_name, sizeof asked.ifr_name - 1);
  if (::ioctl(at.link.get(), SIOCGIFINDEX, &asked) != 0)
    return errno_failure("look for the interface " + name);
  return asked.ifr_ifindex;
}

Result<std::string> address_bytes(const std::string& address) {
  std::string bytes(4, '\0');
  if (::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return bytes;
  return errno_failure(address, EINVAL);
}

// errno of `work` in a thread of its own; 0 = done.
int in_thread(const std::function<int()>& work) {
  int outcome = 0;
  std::thread thread([&] { outcome = work(); });
  thread.join();
  return outcome;
}

}  // namespace

Result<NetSpace> make_net_space() {
  NetSpace made;
  const int failed = in_thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) return errno;
    made.space = Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!made.space) return errno;
    made.link = Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    return made.link ? 0 : errno;
  });
  if (failed != 0) return errno_failure("make a network namespace", failed);
  TRY_VOID(set_up(made, "lo"));
  return made;
}

Result<Fd> in_net_space(const Fd& space, const std::function<Result<Fd>()>& work) {
  std::optional<Result<Fd>> made;
  const int failed = in_thread([&] {
    if (::setns(space.get(), CLONE_NEWNET) != 0) return errno;
    made.emplace(work());
    return 0;
  });
  if (failed != 0) return errno_failure("enter a network namespace", failed);
  return *std::move(made);
}

Result<void> add_bridge(const NetSpace& at, const std::string& name) {
  ifinfomsg body{};
  body.ifi_flags = IFF_UP;
  body.ifi_change = IFF_UP;
  Message message(RTM_NEWLINK, make_new, body);
  message.text(IFLA_IFNAME, name);
  // One of its own: otherwise it is that of a port, and changes when ports come and go, while
  // neighbours still send to the old one.
  message.attribute(IFLA_ADDRESS, std::string_view("\x02\x6e\x76\x64\x72\x61", 6));
  message.nested(IFLA_LINKINFO, [&] { message.attribute(IFLA_INFO_KIND, "bridge"); });
  return message.send(at.link, "make the bridge " + name);
}

Result<void> add_cable(const NetSpace& at, const std::string& bridge, const std::string& name,
                       const NetSpace& far, const std::string& far_name) {
  TRY(const int master, index_of(at, bridge));
  ifinfomsg body{};
  body.ifi_flags = IFF_UP;
  body.ifi_change = IFF_UP;
  Message message(RTM_NEWLINK, make_new, body);
  message.text(IFLA_IFNAME, name);
  message.number(IFLA_MASTER, static_cast<std::uint32_t>(master));
  message.nested(IFLA_LINKINFO, [&] {
    message.attribute(IFLA_INFO_KIND, "veth");
    message.nested(IFLA_INFO_DATA, [&] {
      message.nested(VETH_INFO_PEER, [&] {
        const ifinfomsg peer{};
        message.put(&peer, sizeof peer);
        message.text(IFLA_IFNAME, far_name);
        message.number(IFLA_NET_NS_FD, static_cast<std::uint32_t>(far.space.get()));
      });
    });
  });
  return message.send(at.link, "connect a pod to the network");
}

Result<void> set_up(const NetSpace& at, const std::string& name) {
  TRY(const int index, index_of(at, name));
  ifinfomsg body{};
  body.ifi_index = index;
  body.ifi_flags = IFF_UP;
  body.ifi_change = IFF_UP;
  return Message(RTM_NEWLINK, 0, body).send(at.link, "set up the interface " + name);
}

Result<void> add_address(const NetSpace& at, const std::string& name, const std::string& address,
                         unsigned bits) {
  TRY(const int index, index_of(at, name));
  TRY(const std::string bytes, address_bytes(address));
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = static_cast<unsigned char>(bits);
  body.ifa_index = static_cast<unsigned>(index);
  Message message(RTM_NEWADDR, make_new, body);
  message.attribute(IFA_LOCAL, bytes);
  message.attribute(IFA_ADDRESS, bytes);
  return message.send(at.link, fmt::format("give {} the address {}", name, address));
}

Result<void> add_default_route(const NetSpace& at, const std::string& gateway) {
  TRY(const std::string bytes, address_bytes(gateway));
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_BOOT;
  body.rtm_scope = RT_SCOPE_UNIVERSE;
  body.rtm_type = RTN_UNICAST;
  Message message(RTM_NEWROUTE, make_new, body);
  message.attribute(RTA_GATEWAY, bytes);
  return message.send(at.link, "route to " + gateway);
}

}  // namespace nvdra::sandbox
