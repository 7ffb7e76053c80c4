// Making and ending gRPC servers. Only for dra/*.cpp.
#pragma once

#include "base/time.hpp"

#include <boost/asio/io_context.hpp>

#include <memory>

namespace grpc {
class Server;
class ServerBuilder;
}  // namespace grpc

namespace nvdra::dra {

// What every server of ours has: idle connections stay, pings are welcome, bounded messages and
// streams, no port shared with another process.
void set_common_options(grpc::ServerBuilder& builder);

// Server::Shutdown waits for handlers, and those for the loop; so it runs on a thread of its own
// while this waits. What is still open after `limit` is cut off.
Async<void> shut_down(asio::io_context& loop, std::unique_ptr<grpc::Server> server, Duration limit);

}  // namespace nvdra::dra
