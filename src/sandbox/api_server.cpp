#include "sandbox/api_server.hpp"

#include "base/task_group.hpp"
#include "base/try.hpp"
#include "sandbox/api_session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fmt/format.h>

namespace nvdra::sandbox {

using asio::ip::tcp;

struct ApiServer::Listener {
  tcp::acceptor acceptor;
};

Result<std::unique_ptr<ApiServer>> ApiServer::listen(asio::any_io_executor executor,
                                                     Registry& registry) {
  return listen(std::move(executor), registry, Options{});
}

Result<std::unique_ptr<ApiServer>> ApiServer::listen(asio::any_io_executor executor,
                                                     Registry& registry, Options options) {
  boost::system::error_code failed;
  tcp::endpoint endpoint(asio::ip::address_v4::loopback(), options.port);
  auto listener = std::make_unique<Listener>(tcp::acceptor(executor));
  tcp::acceptor& acceptor = listener->acceptor;
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(tcp::acceptor::max_listen_connections, failed);
  if (failed)
    return fail(failed, fmt::format("listen on 127.0.0.1:{} for the API server", options.port));
  return std::unique_ptr<ApiServer>(
      new ApiServer(std::move(listener), registry, std::move(options)));
}

ApiServer::ApiServer(std::unique_ptr<Listener> listener, Registry& registry, Options options)
    : listener_(std::move(listener)), registry_(registry), options_(std::move(options)) {}

ApiServer::~ApiServer() = default;

std::uint16_t ApiServer::port() const {
  boost::system::error_code ignored;
  return listener_->acceptor.local_endpoint(ignored).port();
}

std::string ApiServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port());
}

std::string ApiServer::kubeconfig() const {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\n"
      "clusters:\n- name: sandbox\n  cluster:\n    server: {}\n"
      "contexts:\n- name: sandbox\n  context:\n    cluster: sandbox\n    user: sandbox\n"
      "    namespace: default\n"
      "users:\n- name: sandbox\n  user: {{}}\n",
      url());
}

std::uint64_t ApiServer::count(std::string_view verb, std::string_view resource) const {
  std::uint64_t total = 0;
  for (const auto& [kind, times] : counts_)
    if ((verb.empty() || kind.verb == verb) && (resource.empty() || kind.resource == resource))
      total += times;
  return total;
}

void ApiServer::cut_watches(std::string_view resource) {
  auto watches = watches_;
  for (const auto& [plural, cut] : watches)
    if (resource.empty() || resource == plural) cut();
}

namespace {

// Accepting pauses when the process has no descriptor left, and goes on.
Async<void> pause(asio::any_io_executor executor) {
  asio::steady_timer timer(executor, 50ms);
  co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

Async<Result<void>> ApiServer::run() {
  tcp::acceptor& acceptor = listener_->acceptor;
  TaskGroup sessions(acceptor.get_executor());
  auto serve = [](ApiServer* server, tcp::socket socket) -> Async<Result<void>> {
    Session session{*server, Connection(std::move(socket))};
    co_await session.serve();
    co_return ok();
  };
  auto accept_all = [](ApiServer* server, TaskGroup* group, auto work) -> Async<Result<void>> {
    tcp::acceptor& from = server->listener_->acceptor;
    for (;;) {
      auto [failed, socket] = co_await from.async_accept(asio::as_tuple(asio::use_awaitable));
      if (failed == asio::error::operation_aborted) co_return ok();
      if (failed) {
        co_await pause(from.get_executor());
        continue;
      }
      group->spawn("connection", work(server, std::move(socket)));
    }
  };
  sessions.spawn("accept", accept_all(this, &sessions, serve));
  Result<void> ended = co_await sessions.join();
  co_return ended;
}

}  // namespace nvdra::sandbox
