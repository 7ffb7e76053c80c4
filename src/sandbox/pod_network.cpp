#include "sandbox/pod_network.hpp"

#include "base/try.hpp"
#include "sandbox/tool_socket.hpp"

#include <fmt/format.h>

namespace nvdra::sandbox {
namespace {

constexpr const char* bridge = "cni0";
constexpr const char* gateway = "10.244.0.1";
constexpr unsigned last_number = 254;
constexpr std::uint16_t api_port = 443;

}  // namespace

std::optional<std::string> PodAddresses::take() {
  for (unsigned tried = first_; tried <= last_number; ++tried) {
    std::string address = fmt::format("{}{}", prefix_, next_);
    next_ = next_ == last_number ? first_ : next_ + 1;
    if (used_.insert(address).second) return address;
  }
  return std::nullopt;
}

std::string loopback_prefix() {
  const int pid = ::getpid();
  return fmt::format("127.{}.{}.", 1 + (pid >> 8) % 250, pid % 256);
}

std::unique_ptr<PodNetwork> PodNetwork::make() {
  std::unique_ptr<PodNetwork> network(new PodNetwork());
  const Result<void> made = network->make_cluster();
  if (!made) {
    network->why_ = made.error().text();
    network->cluster_.reset();
  }
  return network;
}

Result<void> PodNetwork::make_cluster() {
  TRY(cluster_, make_net_space());
  TRY_VOID(add_bridge(*cluster_, bridge));
  TRY_VOID(add_address(*cluster_, bridge, gateway, 16));
  TRY_VOID(add_address(*cluster_, bridge, "10.96.0.1", 32));
  // One cable as a trial: where that fails, pods use the loopback interface.
  TRY(const PodPort trial, plug_in("10.244.0.2"));
  return ok();
}

PodAddresses& PodNetwork::addresses(unsigned number) {
  if (!separate()) return addresses_.try_emplace(0, loopback_prefix(), 65).first->second;
  return addresses_.try_emplace(number, fmt::format("10.244.{}.", number), 2).first->second;
}

Result<PodPort> PodNetwork::attach(unsigned number) {
  std::optional<std::string> address = addresses(number).take();
  if (!address) return refuse("all addresses for pods are in use: delete some pods");
  if (!separate()) return PodPort{.address = *address};
  Result<PodPort> port = plug_in(*address);
  if (!port) detach(number, *address);
  return port;
}

Result<PodPort> PodNetwork::plug_in(std::string address) {
  TRY(NetSpace pod, make_net_space());
  TRY_VOID(add_cable(*cluster_, bridge, fmt::format("veth{}", ++cables_), pod, "eth0"));
  TRY_VOID(add_address(pod, "eth0", address, 16));
  TRY_VOID(set_up(pod, "eth0"));
  TRY_VOID(add_default_route(pod, gateway));
  return PodPort{.address = std::move(address), .space = std::move(pod.space)};
}

void PodNetwork::detach(unsigned number, const std::string& address) {
  addresses(number).give_back(address);
}

Result<Fd> PodNetwork::listen_for_api() {
  if (!separate()) return listen_tcp("127.0.0.1", 0);
  return in_net_space(cluster_->space, [this] { return listen_tcp(api_host(), api_port); });
}

}  // namespace nvdra::sandbox
