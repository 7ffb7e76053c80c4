// The network between the pods of a sandbox.
//
// Where this process may make network namespaces (as root, and as an ordinary user inside its user
// namespace): one of the cluster's own, with a bridge; every pod has a namespace with one cable to
// that bridge, as a container network plugin does it. Pods of node N have addresses 10.244.N.x; the
// API server is 10.96.0.1 port 443. No pod reaches this machine's network.
//
// Elsewhere pods share this machine's loopback interface, and each has an address of its own on it
// (127.a.b.65 to .254, a and b by this process). A port such as 50000 then belongs to the address
// that a program binds: programs that bind their pod's IP stay apart; two that bind all addresses
// meet. That is the only difference.
#pragma once

#include "sandbox/net_link.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace nvdra::sandbox {

// Which addresses are free. One that was given back is used again as late as possible, so that
// nobody who still knows it meets another pod. Pure.
class PodAddresses {
public:
  // `prefix` "10.244.1."; last numbers `first` to 254.
  PodAddresses(std::string prefix, unsigned first)
      : prefix_(std::move(prefix)), first_(first), next_(first) {}
  std::optional<std::string> take();  // nothing: all are in use
  void give_back(const std::string& address) { used_.erase(address); }

private:
  std::string prefix_;
  unsigned first_;
  unsigned next_;
  std::set<std::string> used_;
};

struct PodPort {
  std::string address;
  Fd space = {};  // the pod's network namespace; none = this process's
};

// "127.a.b.": addresses of the loopback interface that other sandboxes do not use.
std::string loopback_prefix();

class PodNetwork {
public:
  // Never fails: without network namespaces it is the loopback interface, and why() says why.
  static std::unique_ptr<PodNetwork> make();

  bool separate() const { return cluster_.has_value(); }
  const std::string& why() const { return why_; }

  // A pod of node `number` (from 1) gets an address. The error says what the machine refused.
  Result<PodPort> attach(unsigned number);
  void detach(unsigned number, const std::string& address);

  // Where pods find the API server, and a listening socket there.
  std::string api_host() const { return separate() ? "10.96.0.1" : "127.0.0.1"; }
  Result<Fd> listen_for_api();

private:
  PodNetwork() = default;
  Result<void> make_cluster();
  Result<PodPort> plug_in(std::string address);
  PodAddresses& addresses(unsigned number);

  std::optional<NetSpace> cluster_;
  std::string why_;
  std::map<unsigned, PodAddresses> addresses_;
  unsigned cables_ = 0;
};

}  // namespace nvdra::sandbox
