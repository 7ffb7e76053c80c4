// The DRA services, v1 and v1beta1 (node-side.md 4.2): messages ↔ our types.
#include "dra/services.hpp"
#include "proto/dra_v1.grpc.pb.h"
#include "proto/dra_v1beta1.grpc.pb.h"

#include <algorithm>

namespace nvdra::dra {
namespace {

namespace v1 = ::k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = ::k8s::io::kubelet::pkg::apis::dra::v1beta1;

struct V1 {
  using Service = v1::DRAPlugin::CallbackService;
  using PrepareRequest = v1::NodePrepareResourcesRequest;
  using PrepareResponse = v1::NodePrepareResourcesResponse;
  using UnprepareRequest = v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = v1::NodeUnprepareResourcesResponse;
  static std::string name() { return v1::DRAPlugin::service_full_name(); }
};
struct V1Beta1 {
  using Service = v1beta1::DRAPlugin::CallbackService;
  using PrepareRequest = v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = v1beta1::NodePrepareResourcesResponse;
  using UnprepareRequest = v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = v1beta1::NodeUnprepareResourcesResponse;
  static std::string name() { return v1beta1::DRAPlugin::service_full_name(); }
};

template <class Request>
std::vector<ClaimRef> claims_of(const Request& request) {
  std::vector<ClaimRef> claims;
  for (const auto& claim : request.claims())
    claims.push_back({claim.namespace_(), claim.name(), ClaimUid(claim.uid())});
  return claims;
}

// The devices of a prepare's entry; an unprepare's entry has none.
template <class Entry>
void fill(Entry& entry, const ClaimResult& result) {
  if (!result.error.empty()) entry.set_error(result.error);
  if constexpr (requires { entry.add_devices(); }) {
    for (const PreparedDevice& device : result.devices) {
      auto* added = entry.add_devices();
      for (const std::string& request : device.requests) added->add_request_names(request);
      added->set_pool_name(device.pool);
      added->set_device_name(device.device);
      for (const std::string& id : device.cdi_ids) added->add_cdi_device_ids(id);
    }
  }
}

// How long the kubelet will listen from now on.
Duration limit_of(const grpc::CallbackServerContext& context) {
  auto left = context.deadline() - WallClock::now();
  return std::clamp<Duration>(left, Duration{}, std::chrono::hours(1));
}

// A request as the loop sees it. The reactor and the response are there until the answer.
template <class Response>
class GrpcRequest final : public ClaimsRequest {
public:
  GrpcRequest(grpc::ServerUnaryReactor& reactor, Response& response)
      : reactor_(reactor), response_(response) {}

  void answer(const std::vector<ClaimResult>& results) override {
    for (const ClaimResult& result : results)
      fill((*response_.mutable_claims())[result.claim.uid.value], result);
    reactor_.Finish(grpc::Status::OK);
  }
  void refuse(const std::string& why) override {
    reactor_.Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, why));
  }

private:
  grpc::ServerUnaryReactor& reactor_;
  Response& response_;
};

class Reactor final : public grpc::ServerUnaryReactor {
public:
  explicit Reactor(Calls& calls) : calls_(calls) {}
  void begin(std::shared_ptr<ClaimsRequest> request) {
    request_ = request;
    calls_.begin(std::move(request));
  }
  void OnCancel() override { calls_.end(request_); }
  void OnDone() override { delete this; }

private:
  Calls& calls_;
  std::shared_ptr<ClaimsRequest> request_;
};

template <class Version>
class DraService final : public Version::Service {
public:
  explicit DraService(Calls& calls) : calls_(calls) {}

  grpc::ServerUnaryReactor* NodePrepareResources(
      grpc::CallbackServerContext* context, const typename Version::PrepareRequest* request,
      typename Version::PrepareResponse* response) override {
    return begin(Verb::prepare, "/NodePrepareResources", *context, *request, *response);
  }
  grpc::ServerUnaryReactor* NodeUnprepareResources(
      grpc::CallbackServerContext* context, const typename Version::UnprepareRequest* request,
      typename Version::UnprepareResponse* response) override {
    return begin(Verb::unprepare, "/NodeUnprepareResources", *context, *request, *response);
  }

private:
  template <class Request, class Response>
  grpc::ServerUnaryReactor* begin(Verb verb, const char* method,
                                  const grpc::CallbackServerContext& context,
                                  const Request& request, Response& response) {
    auto* reactor = new Reactor(calls_);  // deletes itself when gRPC is done with it
    auto handed = std::make_shared<GrpcRequest<Response>>(*reactor, response);
    handed->verb = verb;
    handed->method = "/" + Version::name() + method;
    handed->claims = claims_of(request);
    handed->limit = limit_of(context);
    reactor->begin(std::move(handed));
    return reactor;
  }

  Calls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_dra_v1(Calls& calls) {
  return std::make_unique<DraService<V1>>(calls);
}

std::unique_ptr<grpc::Service> make_dra_v1beta1(Calls& calls) {
  return std::make_unique<DraService<V1Beta1>>(calls);
}

}  // namespace nvdra::dra
