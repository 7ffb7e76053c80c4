#include "fake/kubelet.hpp"

#include "proto/dra_v1.grpc.pb.h"
#include "proto/dra_v1beta1.grpc.pb.h"
#include "proto/grpc_health.grpc.pb.h"
#include "proto/pluginregistration.grpc.pb.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

namespace nvdra::fake {
namespace {

namespace v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;

std::shared_ptr<grpc::Channel> channel_to(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

RpcStatus status_of(const grpc::Status& status) {
  return {static_cast<int>(status.error_code()), status.error_message()};
}

void set_limit(grpc::ClientContext& context, Duration limit) {
  context.set_deadline(WallClock::now() + std::chrono::duration_cast<WallClock::duration>(limit));
}

template <class Request>
Request request_of(const std::vector<dra::ClaimRef>& claims) {
  Request request;
  for (const auto& claim : claims) {
    auto* added = request.add_claims();
    added->set_namespace_(claim.space);
    added->set_name(claim.name);
    added->set_uid(claim.uid.value);
  }
  return request;
}

template <class Response>
std::map<std::string, ClaimAnswer> answers_of(const Response& response) {
  std::map<std::string, ClaimAnswer> answers;
  for (const auto& [uid, entry] : response.claims()) {
    ClaimAnswer answer{{}, entry.error()};
    if constexpr (requires { entry.devices(); }) {
      for (const auto& device : entry.devices())
        answer.devices.push_back(
            {{device.request_names().begin(), device.request_names().end()},
             device.pool_name(),
             device.device_name(),
             {device.cdi_device_ids().begin(), device.cdi_device_ids().end()}});
    }
    answers[uid] = std::move(answer);
  }
  return answers;
}

template <class Request, class Response, class Method>
ClaimAnswers call(const std::vector<dra::ClaimRef>& claims, Duration limit, Method method) {
  grpc::ClientContext context;
  set_limit(context, limit);
  Response response;
  grpc::Status status = method(&context, request_of<Request>(claims), &response);
  return {status_of(status), answers_of(response)};
}

}  // namespace

struct Kubelet::Stubs {
  std::unique_ptr<pluginregistration::Registration::Stub> registration;
  std::unique_ptr<v1::DRAPlugin::Stub> v1;
  std::unique_ptr<v1beta1::DRAPlugin::Stub> v1beta1;
};

Kubelet::Kubelet(const std::string& registrar_socket, const std::string& service_socket) {
  auto service = channel_to("unix:" + service_socket);
  stubs_ = std::make_unique<Stubs>(
      Stubs{pluginregistration::Registration::NewStub(channel_to("unix:" + registrar_socket)),
            v1::DRAPlugin::NewStub(service), v1beta1::DRAPlugin::NewStub(service)});
}

Kubelet::~Kubelet() = default;

PluginInfo Kubelet::get_info() {
  grpc::ClientContext context;
  set_limit(context, 10s);
  pluginregistration::PluginInfo info;
  grpc::Status status = stubs_->registration->GetInfo(&context, {}, &info);
  return {status_of(status),
          info.type(),
          info.name(),
          info.endpoint(),
          {info.supported_versions().begin(), info.supported_versions().end()}};
}

RpcStatus Kubelet::notify(bool registered, const std::string& error) {
  grpc::ClientContext context;
  set_limit(context, 10s);
  pluginregistration::RegistrationStatus request;
  request.set_plugin_registered(registered);
  request.set_error(error);
  pluginregistration::RegistrationStatusResponse response;
  return status_of(stubs_->registration->NotifyRegistrationStatus(&context, request, &response));
}

ClaimAnswers Kubelet::prepare(const std::vector<dra::ClaimRef>& claims, Duration limit,
                              DraVersion version) {
  if (version == DraVersion::v1)
    return call<v1::NodePrepareResourcesRequest, v1::NodePrepareResourcesResponse>(
        claims, limit, [this](auto* context, const auto& request, auto* response) {
          return stubs_->v1->NodePrepareResources(context, request, response);
        });
  return call<v1beta1::NodePrepareResourcesRequest, v1beta1::NodePrepareResourcesResponse>(
      claims, limit, [this](auto* context, const auto& request, auto* response) {
        return stubs_->v1beta1->NodePrepareResources(context, request, response);
      });
}

ClaimAnswers Kubelet::unprepare(const std::vector<dra::ClaimRef>& claims, Duration limit,
                                DraVersion version) {
  if (version == DraVersion::v1)
    return call<v1::NodeUnprepareResourcesRequest, v1::NodeUnprepareResourcesResponse>(
        claims, limit, [this](auto* context, const auto& request, auto* response) {
          return stubs_->v1->NodeUnprepareResources(context, request, response);
        });
  return call<v1beta1::NodeUnprepareResourcesRequest, v1beta1::NodeUnprepareResourcesResponse>(
      claims, limit, [this](auto* context, const auto& request, auto* response) {
        return stubs_->v1beta1->NodeUnprepareResources(context, request, response);
      });
}

std::future<ClaimAnswers> Kubelet::begin_prepare(std::vector<dra::ClaimRef> claims,
                                                 Duration limit) {
  return std::async(std::launch::async,
                    [this, claims = std::move(claims), limit] { return prepare(claims, limit); });
}

RpcStatus Kubelet::prepare_and_leave(const std::vector<dra::ClaimRef>& claims, Duration patience) {
  grpc::ClientContext context;
  auto left = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(patience);
    context.TryCancel();
  });
  v1::NodePrepareResourcesResponse response;
  return status_of(stubs_->v1->NodePrepareResources(
      &context, request_of<v1::NodePrepareResourcesRequest>(claims), &response));
}

HealthAnswer check_health(int port, const std::string& service) {
  auto stub =
      grpc::health::v1::Health::NewStub(channel_to("ipv4:127.0.0.1:" + std::to_string(port)));
  grpc::ClientContext context;
  set_limit(context, 10s);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  grpc::Status status = stub->Check(&context, request, &response);
  return {status_of(status), response.status()};
}

}  // namespace nvdra::fake
