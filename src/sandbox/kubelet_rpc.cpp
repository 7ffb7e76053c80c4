#include "sandbox/kubelet_rpc.hpp"

#include "base/try.hpp"
#include "proto/dra_v1.grpc.pb.h"
#include "proto/dra_v1beta1.grpc.pb.h"
#include "proto/pluginregistration.grpc.pb.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <condition_variable>
#include <mutex>

namespace nvdra::sandbox {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;

// As Go's gRPC spells its codes.
std::string_view word(grpc::StatusCode code) {
  constexpr std::array<std::string_view, 17> words = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  const auto index = static_cast<std::size_t>(code);
  return index < words.size() ? words.at(index) : "Unknown";
}

Failure explain(const grpc::Status& status) {
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return refuse(fmt::format("rpc error: code = {} desc = {}", word(status.error_code()),
                            late ? "context deadline exceeded" : status.error_message()));
}

// How many calls still may touch the loop.
class InFlight {
public:
  void begin() {
    std::lock_guard hold(mutex_);
    ++count_;
  }
  void end() {
    std::lock_guard hold(mutex_);
    --count_;
    changed_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [this] { return count_ == 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// One call. Lives until both sides have let go of it.
template <class Asked, class Answered>
struct Call {
  explicit Call(const asio::any_io_executor& executor)
      : bell(executor, asio::steady_timer::time_point::max()) {}
  grpc::ClientContext context;
  Asked asked;
  Answered answered;
  grpc::Status status;
  bool ended = false;  // on the loop
  asio::steady_timer bell;
};

template <class Call>
struct CancelUnlessEnded {
  std::shared_ptr<Call> call;
  ~CancelUnlessEnded() {
    if (!call->ended) call->context.TryCancel();
  }
};

}  // namespace

struct PluginChannel::Parts {
  asio::any_io_executor executor;
  std::shared_ptr<grpc::Channel> channel;
  std::shared_ptr<InFlight> in_flight = std::make_shared<InFlight>();

  // `begin(call, done)` starts the call on a stub; done is called on a thread of gRPC's.
  template <class Asked, class Answered, class Begin>
  static Async<Result<Answered>> perform(std::shared_ptr<Parts> parts, Asked asked, Duration limit,
                                         Begin begin) {
    auto call = std::make_shared<Call<Asked, Answered>>(parts->executor);
    call->asked = std::move(asked);
    call->context.set_deadline(std::chrono::system_clock::now() + limit);
    const CancelUnlessEnded<Call<Asked, Answered>> guard{call};
    parts->in_flight->begin();
    // gRPC's thread keeps nothing: what belongs to the call goes on the loop.
    begin(*call, [parts, call](grpc::Status status) mutable {
      const std::shared_ptr<InFlight> in_flight = parts->in_flight;
      const asio::any_io_executor executor = parts->executor;
      auto finish = [held = std::move(parts), call = std::move(call), status = std::move(status)] {
        call->status = status;
        call->ended = true;
        call->bell.cancel();
      };
      asio::post(executor, std::move(finish));
      in_flight->end();
    });
    while (!call->ended) {
      auto [woken] = co_await call->bell.async_wait(asio::as_tuple(asio::use_awaitable));
      (void)woken;
    }
    if (!call->status.ok()) co_return explain(call->status);
    co_return std::move(call->answered);
  }
};

PluginChannel::PluginChannel(asio::any_io_executor executor, const std::string& socket)
    : parts_(std::make_shared<Parts>()) {
  parts_->executor = std::move(executor);
  grpc::ChannelArguments arguments;
  // A channel of its own: nothing is left of a connection to an earlier plugin.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  parts_->channel =
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

PluginChannel::~PluginChannel() {
  parts_->in_flight->wait_for_none();
}

Async<Result<PluginInfo>> PluginChannel::get_info(Duration limit) {
  using pluginregistration::Registration;
  auto stub = std::shared_ptr(Registration::NewStub(parts_->channel));
  auto begin = [stub](auto& call, auto done) {
    stub->async()->GetInfo(&call.context, &call.asked, &call.answered, std::move(done));
  };
  auto answer =
      co_await Parts::perform<pluginregistration::InfoRequest, pluginregistration::PluginInfo>(
          parts_, {}, limit, begin);
  if (!answer) co_return std::move(answer).failure();
  co_return PluginInfo{answer->type(),
                       answer->name(),
                       answer->endpoint(),
                       {answer->supported_versions().begin(), answer->supported_versions().end()}};
}

Async<Result<void>> PluginChannel::notify(bool registered, std::string error, Duration limit) {
  using pluginregistration::Registration;
  pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(registered);
  status.set_error(error);
  auto stub = std::shared_ptr(Registration::NewStub(parts_->channel));
  auto begin = [stub](auto& call, auto done) {
    stub->async()->NotifyRegistrationStatus(&call.context, &call.asked, &call.answered,
                                            std::move(done));
  };
  auto answer = co_await Parts::perform<pluginregistration::RegistrationStatus,
                                        pluginregistration::RegistrationStatusResponse>(
      parts_, std::move(status), limit, begin);
  if (!answer) co_return std::move(answer).failure();
  co_return ok();
}

namespace {

template <class Request>
Request request_for(const std::vector<dra::ClaimRef>& claims) {
  Request request;
  for (const dra::ClaimRef& claim : claims) {
    auto* one = request.add_claims();
    one->set_namespace_(claim.space);
    one->set_name(claim.name);
    one->set_uid(claim.uid.value);
  }
  return request;
}

template <class Response>
ClaimAnswers prepared_of(const Response& response) {
  ClaimAnswers answers;
  for (const auto& [uid, result] : response.claims()) {
    ClaimAnswer& answer = answers[uid];
    answer.error = result.error();
    for (const auto& device : result.devices())
      answer.devices.push_back({{device.request_names().begin(), device.request_names().end()},
                                device.pool_name(),
                                device.device_name(),
                                {device.cdi_device_ids().begin(), device.cdi_device_ids().end()}});
  }
  return answers;
}

template <class Response>
ClaimAnswers unprepared_of(const Response& response) {
  ClaimAnswers answers;
  for (const auto& [uid, result] : response.claims()) answers[uid].error = result.error();
  return answers;
}

constexpr auto begin_prepare = [](auto stub) {
  return [stub](auto& call, auto done) {
    stub->async()->NodePrepareResources(&call.context, &call.asked, &call.answered,
                                        std::move(done));
  };
};
constexpr auto begin_unprepare = [](auto stub) {
  return [stub](auto& call, auto done) {
    stub->async()->NodeUnprepareResources(&call.context, &call.asked, &call.answered,
                                          std::move(done));
  };
};

}  // namespace

Async<Result<ClaimAnswers>> PluginChannel::prepare(DraVersion version,
                                                   std::vector<dra::ClaimRef> claims,
                                                   Duration limit) {
  if (version == DraVersion::v1) {
    using Asked = v1::NodePrepareResourcesRequest;
    auto begin = begin_prepare(std::shared_ptr(v1::DRAPlugin::NewStub(parts_->channel)));
    auto answer = co_await Parts::perform<Asked, v1::NodePrepareResourcesResponse>(
        parts_, request_for<Asked>(claims), limit, begin);
    if (!answer) co_return std::move(answer).failure();
    co_return prepared_of(*answer);
  }
  using Asked = v1beta1::NodePrepareResourcesRequest;
  auto begin = begin_prepare(std::shared_ptr(v1beta1::DRAPlugin::NewStub(parts_->channel)));
  auto answer = co_await Parts::perform<Asked, v1beta1::NodePrepareResourcesResponse>(
      parts_, request_for<Asked>(claims), limit, begin);
  if (!answer) co_return std::move(answer).failure();
  co_return prepared_of(*answer);
}

Async<Result<ClaimAnswers>> PluginChannel::unprepare(DraVersion version,
                                                     std::vector<dra::ClaimRef> claims,
                                                     Duration limit) {
  if (version == DraVersion::v1) {
    using Asked = v1::NodeUnprepareResourcesRequest;
    auto begin = begin_unprepare(std::shared_ptr(v1::DRAPlugin::NewStub(parts_->channel)));
    auto answer = co_await Parts::perform<Asked, v1::NodeUnprepareResourcesResponse>(
        parts_, request_for<Asked>(claims), limit, begin);
    if (!answer) co_return std::move(answer).failure();
    co_return unprepared_of(*answer);
  }
  using Asked = v1beta1::NodeUnprepareResourcesRequest;
  auto begin = begin_unprepare(std::shared_ptr(v1beta1::DRAPlugin::NewStub(parts_->channel)));
  auto answer = co_await Parts::perform<Asked, v1beta1::NodeUnprepareResourcesResponse>(
      parts_, request_for<Asked>(claims), limit, begin);
  if (!answer) co_return std::move(answer).failure();
  co_return unprepared_of(*answer);
}

}  // namespace nvdra::sandbox
