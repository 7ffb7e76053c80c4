#include "sandbox/api_front.hpp"

#include "base/task_group.hpp"
#include "base/try.hpp"
#include "sandbox/api_certificate.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>

namespace nvdra::sandbox {
namespace {

using namespace std::chrono_literals;
using asio::ip::tcp;
using Secure = asio::ssl::stream<tcp::socket>;
constexpr auto quietly = asio::as_tuple(asio::use_awaitable);

// Everything from one side to the other; its end stops the whole connection.
template <class From, class To>
Async<Result<void>> pump(From* from, To* to, TaskGroup* connection) {
  std::array<char, 16384> piece{};
  for (;;) {
    auto [failed, size] = co_await from->async_read_some(asio::buffer(piece), quietly);
    if (failed) break;
    auto [broken, written] = co_await asio::async_write(*to, asio::buffer(piece, size), quietly);
    if (broken) break;
  }
  connection->stop();
  co_return ok();
}

Async<Result<void>> serve(tcp::socket client, asio::ssl::context* context, std::uint16_t to) {
  auto executor = co_await asio::this_coro::executor;
  Secure secure(std::move(client), *context);
  auto [refused] = co_await secure.async_handshake(Secure::server, quietly);
  if (refused) co_return ok();
  tcp::socket plain(executor);
  const tcp::endpoint server(asio::ip::address_v4::loopback(), to);
  auto [away] = co_await plain.async_connect(server, quietly);
  if (away) co_return ok();
  TaskGroup connection(executor);
  connection.spawn("in", pump(&secure, &plain, &connection));
  connection.spawn("out", pump(&plain, &secure, &connection));
  Result<void> ended = co_await connection.join();
  (void)ended;  // its client sees that
  co_return ok();
}

}  // namespace

struct ApiFront::Parts {
  tcp::acceptor acceptor;
  asio::ssl::context context{asio::ssl::context::tls_server};
  std::uint16_t to;
};

ApiFront::ApiFront(std::unique_ptr<Parts> parts, std::string authority)
    : parts_(std::move(parts)), authority_(std::move(authority)) {}

ApiFront::~ApiFront() = default;

Result<std::unique_ptr<ApiFront>> ApiFront::make(asio::any_io_executor executor, Fd listening,
                                                 std::uint16_t to,
                                                 const std::vector<std::string>& names) {
  auto parts = std::make_unique<Parts>(
      Parts{.acceptor = tcp::acceptor(executor, tcp::v4(), listening.release()), .to = to});
  TRY(std::string authority, use_own_certificate(parts->context.native_handle(), names));
  return std::unique_ptr<ApiFront>(new ApiFront(std::move(parts), std::move(authority)));
}

std::uint16_t ApiFront::port() const {
  return parts_->acceptor.local_endpoint().port();
}

Async<Result<void>> ApiFront::run() {
  TaskGroup connections(parts_->acceptor.get_executor());
  const auto accept = [](Parts* parts, TaskGroup* into) -> Async<Result<void>> {
    asio::steady_timer pause(parts->acceptor.get_executor());
    for (;;) {
      auto [failed, socket] = co_await parts->acceptor.async_accept(quietly);
      if (failed == asio::error::operation_aborted) co_return ok();
      if (failed) {  // no descriptor is left: go on when one is
        pause.expires_after(50ms);
        co_await pause.async_wait(quietly);
        continue;
      }
      into->spawn("connection", serve(std::move(socket), &parts->context, parts->to));
    }
  };
  connections.spawn("accept", accept(parts_.get(), &connections));
  Result<void> ended = co_await connections.join();
  co_return ended;
}

}  // namespace nvdra::sandbox
