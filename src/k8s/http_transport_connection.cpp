#include "k8s/http_transport_connection.hpp"

#include "base/within.hpp"
#include "k8s/tls.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <nss.h>
#include <sys/socket.h>

#include <optional>
#include <tuple>
#include <vector>

namespace nvdra::k8s {
namespace {

using asio::ip::tcp;
using boost::system::error_code;
constexpr std::size_t piece = std::size_t{16} * 1024;

// What an awaited operation said. Cancellation is no answer: it goes up.
error_code unless_cancelled(error_code failed) {
  if (failed == asio::error::operation_aborted) throw boost::system::system_error(failed);
  return failed;
}

struct Lookup {
  explicit Lookup(const asio::any_io_executor& executor)
      : resolver(executor), done(executor, asio::steady_timer::time_point::max()) {}
  tcp::resolver resolver;
  asio::steady_timer done;
  bool ended = false;
  error_code failed;
  std::vector<tcp::endpoint> found;
};

// getaddrinfo() runs on Asio's own thread and cannot be interrupted, so nobody waits for it
// directly: a look-up that is late ends alone.
Async<Result<std::vector<tcp::endpoint>>> look_up(std::string host, std::string port) {
  // A static program cannot load name-service modules; these two are built in.
  static const int configured = ::__nss_configure_lookup("hosts", "files dns");
  (void)configured;
  auto executor = co_await asio::this_coro::executor;
  auto lookup = std::make_shared<Lookup>(executor);
  lookup->resolver.async_resolve(host, port, tcp::resolver::numeric_service,
                                 [lookup](error_code failed, const auto& results) {
                                   lookup->ended = true;
                                   lookup->failed = failed;
                                   for (const auto& entry : results)
                                     lookup->found.push_back(entry.endpoint());
                                   lookup->done.cancel();
                                 });
  auto [rung] = co_await lookup->done.async_wait(asio::as_tuple(asio::use_awaitable));
  if (!lookup->ended) {
    lookup->resolver.cancel();
    throw boost::system::system_error(rung);
  }
  if (lookup->failed) co_return fail(lookup->failed);
  co_return std::move(lookup->found);
}

Async<Result<std::vector<tcp::endpoint>>> addresses_of(std::string host, std::string port) {
  error_code not_an_address;
  auto address = asio::ip::make_address(host, not_an_address);
  if (!not_an_address) {
    auto number = static_cast<asio::ip::port_type>(std::stoi(port));
    co_return std::vector{tcp::endpoint(address, number)};
  }
  Result<std::vector<tcp::endpoint>> found = co_await look_up(std::move(host), std::move(port));
  co_return found;
}

// Dead peers are found by the kernel too, also while we only wait.
void set_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  auto set = [&](int name, int value) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, 30);
  set(TCP_KEEPINTVL, 10);
  set(TCP_KEEPCNT, 3);
  set(TCP_USER_TIMEOUT, 20'000);  // milliseconds without an acknowledgement
}

Failure not_connected(const Server& server, const Error& why) {
  return fail(Errc::not_sent, "connect " + server.text() + ": " + why.text());
}

}  // namespace

std::string Server::text() const {
  return host.find(':') == std::string::npos ? host + ":" + port : "[" + host + "]:" + port;
}

struct Connection::Wire {
  explicit Wire(const asio::any_io_executor& executor) : socket(executor) {}
  tcp::socket socket;
  std::optional<asio::ssl::stream<tcp::socket&>> tls;
};

Connection::Connection(std::unique_ptr<Wire> wire, std::string where)
    : wire_(std::move(wire)), where_(std::move(where)) {}
Connection::~Connection() = default;

namespace {

Async<Result<void>> connect_socket(tcp::socket& socket, tcp::endpoint to) {
  error_code failed;
  socket.close(failed);
  socket.open(to.protocol(), failed);
  if (failed) co_return fail(failed);
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  auto [refused] = co_await socket.async_connect(to, asio::as_tuple(asio::use_awaitable));
  if (unless_cancelled(refused)) co_return fail(refused);
  set_options(socket);
  co_return ok();
}

Async<Result<void>> shake_hands(asio::ssl::stream<tcp::socket&>& stream, const Tls& tls) {
  tls.prepare(stream.native_handle());
  auto [failed] = co_await stream.async_handshake(asio::ssl::stream_base::client,
                                                  asio::as_tuple(asio::use_awaitable));
  if (unless_cancelled(failed)) co_return refuse(tls.explain(stream.native_handle(), failed));
  co_return ok();
}

}  // namespace

Async<Result<std::unique_ptr<Connection>>> Connection::open(Server server, Time* time) {
  Instant deadline = time->now() + server.limit;
  Result<std::vector<tcp::endpoint>> addresses =
      co_await within(*time, server.limit, addresses_of(server.host, server.port));
  if (!addresses) co_return not_connected(server, addresses.error());

  auto executor = co_await asio::this_coro::executor;
  auto wire = std::make_unique<Wire>(executor);
  Result<void> done = refuse("no address found");
  auto left = static_cast<int>(addresses->size());
  for (const tcp::endpoint& address : *addresses) {
    auto share = (deadline - time->now()) / left--;
    done = co_await within(*time, share, connect_socket(wire->socket, address));
    if (done) break;
  }
  if (done && server.tls) {
    wire->tls.emplace(wire->socket, ::SSL_new(server.tls->context()));
    done = co_await within(*time, deadline - time->now(), shake_hands(*wire->tls, *server.tls));
  }
  if (!done) co_return not_connected(server, done.error());
  co_return std::unique_ptr<Connection>(new Connection(std::move(wire), server.text()));
}

bool Connection::quiet() const {
  if (!unparsed_.empty()) return false;
  char byte = 0;
  ssize_t got = ::recv(wire_->socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

Failure Connection::lost(Errc code, const std::string& why) const {
  return fail(code, where_ + ": " + why);
}

Async<Result<void>> Connection::write(std::string bytes) {
  constexpr auto token = asio::as_tuple(asio::use_awaitable_t<asio::any_io_executor>());
  std::tuple<error_code, std::size_t> written;
  if (wire_->tls) {
    written = co_await asio::async_write(*wire_->tls, asio::buffer(bytes), token);
  } else {
    written = co_await asio::async_write(wire_->socket, asio::buffer(bytes), token);
  }
  auto [failed, sent] = written;
  if (!unless_cancelled(failed)) co_return ok();
  co_return lost(sent == 0 ? Errc::not_sent : Errc::disconnected, failed.message());
}

Async<Result<void>> Connection::read_into(HttpAnswerParser& answer) {
  constexpr auto token = asio::as_tuple(asio::use_awaitable_t<asio::any_io_executor>());
  std::size_t old = unparsed_.size();
  unparsed_.resize(old + piece);
  asio::mutable_buffer space(unparsed_.data() + old, piece);
  std::tuple<error_code, std::size_t> received;
  if (wire_->tls) {
    received = co_await wire_->tls->async_read_some(space, token);
  } else {
    received = co_await wire_->socket.async_read_some(space, token);
  }
  auto [failed, count] = received;
  unparsed_.resize(old + count);
  failed = unless_cancelled(failed);
  if (failed && failed != asio::error::eof) co_return lost(Errc::disconnected, failed.message());
  if (failed) {
    Result<void> ended = answer.put_end();
    if (!ended) co_return std::move(ended).failure().during(where_);
    co_return ok();
  }
  Result<std::size_t> used = answer.put(unparsed_);
  if (!used) co_return std::move(used).failure().during(where_);
  unparsed_.erase(0, *used);
  co_return ok();
}

}  // namespace nvdra::k8s
