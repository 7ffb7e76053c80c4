// The gRPC services of the kubelet's two sockets. They hand everything over to the loop.
#pragma once

#include "dra/calls.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace grpc {
class Service;
}

namespace nvdra::dra {

// What the registration service tells the kubelet (node-side.md 4.1) [KEEP].
struct PluginIdentity {
  std::string name;      // of the driver
  std::string endpoint;  // absolute path of the service's socket
};

// k8s.io.kubelet.pkg.apis.dra.v1 and .v1beta1: the same claims, two packages. `calls` outlives
// them.
std::unique_ptr<grpc::Service> make_dra_v1(Calls& calls);
std::unique_ptr<grpc::Service> make_dra_v1beta1(Calls& calls);

// `notified` is called on the loop with the kubelet's word: registered, and if not, why.
std::unique_ptr<grpc::Service> make_registration(
    asio::io_context& loop, PluginIdentity identity,
    std::function<void(bool registered, const std::string& error)> notified);

}  // namespace nvdra::dra
