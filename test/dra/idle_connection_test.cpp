// Report 28: a kubelet's connection that is silent for long is used again.
#include "catch.hpp"
#include "dra/server.hpp"
#include "fake/kubelet.hpp"
#include "fake/temp_dir.hpp"
#include "proto/dra_v1.grpc.pb.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <filesystem>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

class EmptyPlugin final : public Plugin {
public:
  Async<Result<Prepared>> prepare(ClaimRef, Deadline) override { co_return Prepared{}; }
  Async<Result<void>> unprepare(ClaimRef, Deadline) override { co_return ok(); }
};

// A channel that pings every 10 ms, with and without calls: an hour's worth of a kubelet's pings
// (one per 10 s) in less than four seconds.
std::shared_ptr<grpc::Channel> pinging_channel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

TEST_CASE("a connection that only pings for long is kept and used again",
          "[dra][server][loopback]") {
  fake::TempDir dir;
  std::filesystem::create_directory(dir.path("plugin"));
  std::filesystem::create_directory(dir.path("registry"));
  RealTime time;
  fake::PluginLoop loop;
  EmptyPlugin plugin;
  Server server{loop.loop,
                time,
                plugin,
                {.driver = "driver.example",
                 .plugin_directory = dir.path("plugin"),
                 .registrar_directory = dir.path("registry"),
                 .patience = 0s}};
  REQUIRE(loop.run(server.start()));

  auto channel = pinging_channel(server.service_path());
  REQUIRE(channel->WaitForConnected(std::chrono::system_clock::now() + 10s));
  // Wakes up early if the connection leaves READY, as it would after a GOAWAY.
  bool left =
      channel->WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::now() + 3600ms);
  CHECK_FALSE(left);
  CHECK(channel->GetState(false) == GRPC_CHANNEL_READY);

  auto stub = ::k8s::io::kubelet::pkg::apis::dra::v1::DRAPlugin::NewStub(channel);
  grpc::ClientContext context;
  ::k8s::io::kubelet::pkg::apis::dra::v1::NodePrepareResourcesResponse response;
  CHECK(stub->NodePrepareResources(&context, {}, &response).ok());
  loop.run(server.stop(0s));
}
