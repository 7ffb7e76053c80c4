// The registration service (node-side.md 4.1): the kubelet asks who we are and says how it went.
#include "base/log.hpp"
#include "dra/services.hpp"
#include "proto/pluginregistration.grpc.pb.h"

#include <boost/asio/post.hpp>

namespace nvdra::dra {
namespace {

namespace wire = ::pluginregistration;

class Registration final : public wire::Registration::CallbackService {
public:
  Registration(asio::io_context& loop, PluginIdentity identity,
               std::function<void(bool, const std::string&)> notified)
      : loop_(loop), identity_(std::move(identity)), notified_(std::move(notified)) {}

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context, const wire::InfoRequest*,
                                    wire::PluginInfo* response) override {
    auto* reactor = context->DefaultReactor();
    asio::post(loop_, [this, reactor, response] {
      LOG_INFO(6, "gRPC request",
               {{"requestID", Calls::next_id()},
                {"method", "/pluginregistration.Registration/GetInfo"}});
      response->set_type("DRAPlugin");
      response->set_name(identity_.name);
      response->set_endpoint(identity_.endpoint);
      response->add_supported_versions("v1.DRAPlugin");
      response->add_supported_versions("v1beta1.DRAPlugin");
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* NotifyRegistrationStatus(grpc::CallbackServerContext* context,
                                                     const wire::RegistrationStatus* request,
                                                     wire::RegistrationStatusResponse*) override {
    auto* reactor = context->DefaultReactor();
    bool registered = request->plugin_registered();
    asio::post(loop_, [this, reactor, registered, error = request->error()] {
      LOG_INFO(6, "gRPC request",
               {{"requestID", Calls::next_id()},
                {"method", "/pluginregistration.Registration/NotifyRegistrationStatus"},
                {"registered", registered},
                {"err", error}});
      notified_(registered, error);
      reactor->Finish(registered
                          ? grpc::Status::OK
                          : grpc::Status(grpc::StatusCode::UNKNOWN,
                                         "the kubelet could not register this plugin: " + error));
    });
    return reactor;
  }

private:
  asio::io_context& loop_;
  PluginIdentity identity_;
  std::function<void(bool, const std::string&)> notified_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_registration(
    asio::io_context& loop, PluginIdentity identity,
    std::function<void(bool registered, const std::string& error)> notified) {
  return std::make_unique<Registration>(loop, std::move(identity), std::move(notified));
}

}  // namespace nvdra::dra
