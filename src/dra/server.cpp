#include "dra/server.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "dra/calls.hpp"
#include "dra/grpc_server.hpp"
#include "dra/served_socket.hpp"
#include "dra/services.hpp"

#include <fmt/format.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

namespace nvdra::dra {
namespace {

constexpr Duration shutdown_limit = 1s;

// `flag` names the directory of the socket that could not be made.
Failure with_remedy(Failure failure, std::string_view step, const std::string& path,
                    const std::string& flag) {
  const boost::system::error_code code = failure.error.code;
  if (code != boost::system::errc::no_such_file_or_directory &&
      code != boost::system::errc::not_a_directory)
    return std::move(failure).during(step);
  return refuse(fmt::format("{}: there is no directory {}: give {} the one that the kubelet has",
                            step, path.substr(0, path.rfind('/')), flag));
}

}  // namespace

// One gRPC server has both sockets' services. It listens on nothing: connections that the sockets
// accept are handed to it, so that a socket can come and go without it.
struct Server::State {
  State(asio::io_context& l, Time& time, Plugin& plugin, ServerConfig c)
      : loop(l),
        config(std::move(c)),
        calls(loop, time, plugin, config.call_limit),
        changes(loop.get_executor()),
        sockets(loop.get_executor()),
        service(loop.get_executor(), time, service_socket_path(config.plugin_directory), taker()),
        registrar(loop.get_executor(), time,
                  registrar_socket_path(config.registrar_directory, config.driver), taker()) {}

  ServedSocket::Accepted taker() {
    return [this](Fd connection) {
      if (server) grpc::AddInsecureChannelFromFd(server.get(), connection.release());
    };
  }
  void build();
  void notified(bool registered, const std::string& error);

  asio::io_context& loop;
  ServerConfig config;
  Calls calls;
  RegistrationState registration;
  Event changes;
  std::vector<std::unique_ptr<grpc::Service>> services;  // outlive the server
  std::unique_ptr<grpc::Server> server;
  TaskGroup sockets;
  ServedSocket service;
  ServedSocket registrar;
};

void Server::State::build() {
  services.clear();
  services.push_back(make_dra_v1(calls));
  services.push_back(make_dra_v1beta1(calls));
  services.push_back(make_registration(
      loop, {config.driver, service.path()},
      [this](bool registered, const std::string& error) { notified(registered, error); }));
  grpc::ServerBuilder builder;
  set_common_options(builder);
  for (const auto& each : services) builder.RegisterService(each.get());
  server = builder.BuildAndStart();
}

void Server::State::notified(bool registered, const std::string& error) {
  registration = {true, registered, registered ? "" : error};
  if (registered)
    LOG_INFO(1, "The kubelet has registered the plugin", {{"socket", registrar.path()}});
  else
    LOG_ERROR("The kubelet refused to register the plugin",
              {{"socket", registrar.path()}, {"err", error}});
  changes.notify();
}

Server::Server(asio::io_context& loop, Time& time, Plugin& plugin, ServerConfig config)
    : state_(std::make_unique<State>(loop, time, plugin, std::move(config))) {}

Server::~Server() = default;

Async<Result<void>> Server::start() {
  State& s = *state_;
  CO_TRY_VOID(check_socket_path(s.service.path(), s.config.plugin_flag));
  CO_TRY_VOID(check_socket_path(s.registrar.path(), s.config.registrar_flag));
  s.build();
  if (!s.server) co_return refuse("the gRPC server could not be started");
  Result<void> served = co_await s.service.open(s.config.patience);
  if (!served)
    co_return with_remedy(std::move(served).failure(), "serve claims", s.service.path(),
                          s.config.plugin_flag);
  s.sockets.spawn("claims", s.service.run());
  Result<void> announced = co_await s.registrar.open(s.config.patience);
  if (!announced)
    co_return with_remedy(std::move(announced).failure(), "announce the plugin", s.registrar.path(),
                          s.config.registrar_flag);
  s.sockets.spawn("registration", s.registrar.run());
  LOG_INFO(1, "Serving the kubelet",
           {{"service", s.service.path()}, {"registration", s.registrar.path()}});
  co_return ok();
}

Async<void> Server::stop(Duration drain) {
  State& s = *state_;
  s.sockets.stop();
  Result<void> ended = co_await s.sockets.join();
  (void)ended;  // a socket's tasks end by cancellation only
  s.registrar.close();
  s.service.close();
  co_await s.calls.drain(drain);
  co_await shut_down(s.loop, std::move(s.server), shutdown_limit);
}

const RegistrationState& Server::registration() const {
  return state_->registration;
}

Event& Server::changes() {
  return state_->changes;
}

std::string Server::trouble() const {
  const State& s = *state_;
  if (!s.service.trouble().empty()) return s.service.trouble();
  if (!s.registrar.trouble().empty()) return s.registrar.trouble();
  if (!s.registration.asked)
    return "the kubelet has not registered the plugin yet: it looks for sockets in its own "
           "directory, compare " +
           s.config.registrar_flag;
  if (!s.registration.registered)
    return "the kubelet refused to register the plugin: " + s.registration.error;
  return {};
}

std::string Server::service_path() const {
  return state_->service.path();
}

std::string Server::registrar_path() const {
  return state_->registrar.path();
}

}  // namespace nvdra::dra
