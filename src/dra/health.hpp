// The health service for the kubelet's gRPC probes (node-side.md 4.5): grpc.health.v1.Health on
// TCP, all interfaces, because probes go to the pod's address. Check answers for the services ""
// and "liveness"; it asks both sockets what the kubelet would ask, so it also proves that the loop
// runs. It says SERVING or NOT_SERVING and nothing else; other services are NOT_FOUND, Watch is
// unimplemented. It knows no claims: prepare and unprepare cannot be reached over TCP.
#pragma once

#include "base/async.hpp"
#include "base/time.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace nvdra::dra {

class HealthServer {
public:
  HealthServer(asio::io_context& loop, std::string service_path, std::string registrar_path);
  ~HealthServer();

  // Port 0 = any free one. Returns the port. The error names the port.
  Result<int> start(int port);
  // Harmless without start() and when repeated. As to cancellation see Server::stop.
  Async<void> stop();

private:
  asio::io_context& loop_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace nvdra::dra
