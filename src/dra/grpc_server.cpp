#include "dra/grpc_server.hpp"

#include "base/event.hpp"
#include "base/log.hpp"

#include <boost/asio/post.hpp>

#include <grpc/support/log.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <thread>

namespace nvdra::dra {
namespace {

constexpr int message_limit = 1 << 20;
constexpr int stream_limit = 512;
constexpr int shortest_ping = 1000;  // ms

// A thread that is waited for, whatever happens.
struct Joined {
  std::thread thread;
  ~Joined() { thread.join(); }
};

// gRPC's own words, from any of its threads; what matters is told by us as well.
void log_of_grpc(gpr_log_func_args* line) {
  LOG_INFO(2, "gRPC library", {{"message", line->message}});
}

}  // namespace

void set_common_options(grpc::ServerBuilder& builder) {
  ::gpr_set_log_function(log_of_grpc);
  builder.SetMaxReceiveMessageSize(message_limit);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, stream_limit);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, shortest_ping);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

Async<void> shut_down(asio::io_context& loop, std::unique_ptr<grpc::Server> server,
                      Duration limit) {
  if (!server) co_return;
  auto ended = std::make_shared<Event>(loop.get_executor());
  auto deadline = WallClock::now() + std::chrono::duration_cast<WallClock::duration>(limit);
  Joined worker{std::thread([&loop, ended, deadline, raw = server.get()] {
    raw->Shutdown(deadline);
    asio::post(loop, [ended] { ended->notify(); });
  })};
  co_await ended->wait(0);
}

}  // namespace nvdra::dra
