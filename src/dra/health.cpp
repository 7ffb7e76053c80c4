#include "dra/health.hpp"

#include "dra/grpc_server.hpp"
#include "proto/dra_v1beta1.grpc.pb.h"
#include "proto/grpc_health.grpc.pb.h"
#include "proto/pluginregistration.grpc.pb.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <functional>

namespace nvdra::dra {
namespace {

namespace wire = ::grpc::health::v1;
namespace claims = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;

constexpr auto probe_limit = std::chrono::seconds(5);
constexpr Duration shutdown_limit = 500ms;

// A new connection each time: an old one would outlive the socket's file.
std::shared_ptr<grpc::Channel> connect(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

// The two questions, one after the other; keeps itself alive until it has called `done`, once, from
// one of gRPC's threads.
class Probe : public std::enable_shared_from_this<Probe> {
public:
  Probe(const std::string& registrar, const std::string& service, WallClock::time_point deadline,
        std::function<void(bool healthy)> done)
      : registration_(::pluginregistration::Registration::NewStub(connect(registrar))),
        service_(claims::DRAPlugin::NewStub(connect(service))),
        done_(std::move(done)) {
    info_context_.set_deadline(deadline);
    prepare_context_.set_deadline(deadline);
  }

  void run() {
    registration_->async()->GetInfo(&info_context_, &info_request_, &info_,
                                    [self = shared_from_this()](grpc::Status status) {
                                      status.ok() ? self->prepare_nothing() : self->done_(false);
                                    });
  }

private:
  void prepare_nothing() {
    service_->async()->NodePrepareResources(
        &prepare_context_, &prepare_request_, &prepared_,
        [self = shared_from_this()](grpc::Status status) { self->done_(status.ok()); });
  }

  std::unique_ptr<::pluginregistration::Registration::Stub> registration_;
  std::unique_ptr<claims::DRAPlugin::Stub> service_;
  std::function<void(bool)> done_;
  grpc::ClientContext info_context_;
  ::pluginregistration::InfoRequest info_request_;
  ::pluginregistration::PluginInfo info_;
  grpc::ClientContext prepare_context_;
  claims::NodePrepareResourcesRequest prepare_request_;
  claims::NodePrepareResourcesResponse prepared_;
};

// Touches nothing of the loop's, so it may work on gRPC's threads.
class HealthService final : public wire::Health::CallbackService {
public:
  HealthService(std::string service_path, std::string registrar_path)
      : service_path_(std::move(service_path)), registrar_path_(std::move(registrar_path)) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const wire::HealthCheckRequest* request,
                                  wire::HealthCheckResponse* response) override {
    auto* reactor = context->DefaultReactor();
    if (!request->service().empty() && request->service() != "liveness") {
      reactor->Finish(grpc::Status(
          grpc::StatusCode::NOT_FOUND,
          fmt::format("unknown service {:?}: ask for \"\" or \"liveness\"", request->service())));
      return reactor;
    }
    auto deadline =
        std::min<WallClock::time_point>(context->deadline(), WallClock::now() + probe_limit);
    auto answer = [reactor, response](bool healthy) {
      response->set_status(healthy ? wire::HealthCheckResponse::SERVING
                                   : wire::HealthCheckResponse::NOT_SERVING);
      reactor->Finish(grpc::Status::OK);
    };
    std::make_shared<Probe>(registrar_path_, service_path_, deadline, answer)->run();
    return reactor;
  }

private:
  std::string service_path_;
  std::string registrar_path_;
};

}  // namespace

HealthServer::HealthServer(asio::io_context& loop, std::string service_path,
                           std::string registrar_path)
    : loop_(loop),
      service_(
          std::make_unique<HealthService>(std::move(service_path), std::move(registrar_path))) {}

HealthServer::~HealthServer() = default;

Result<int> HealthServer::start(int port) {
  grpc::ServerBuilder builder;
  set_common_options(builder);
  int bound = 0;
  // gRPC takes [::] for every address of either family, also where there is no IPv6.
  builder.AddListeningPort(fmt::format("[::]:{}", port), grpc::InsecureServerCredentials(), &bound);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ && bound > 0) return bound;
  server_.reset();
  return refuse(
      fmt::format("the health service cannot listen on TCP port {}: is the port taken?", port));
}

Async<void> HealthServer::stop() {
  co_await shut_down(loop_, std::move(server_), shutdown_limit);
}

}  // namespace nvdra::dra
