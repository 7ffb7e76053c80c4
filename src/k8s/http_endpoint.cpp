#include "k8s/http_endpoint.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "base/within.hpp"
#include "k8s/http_page.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <list>
#include <map>

namespace nvdra::k8s {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

// Of a connection that is closed while the peer may still be sending.
constexpr Duration linger = 1s;

// So that child processes do not hold the port.
void close_on_exec(int descriptor) {
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

struct Address {
  std::vector<tcp::endpoint> candidates;  // the first one that the system knows is used
};

Result<Address> parse_address(const std::string& text, std::string_view flag) {
  auto refused = [&] {
    return refuse(fmt::format(
        "\"{}\" is no address to listen on ({}), expected \":8080\", \"127.0.0.1:8080\" or "
        "\"[::1]:8080\"",
        text, flag));
  };
  std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return refused();
  std::string host = text.substr(0, colon);
  std::string_view digits = std::string_view(text).substr(colon + 1);
  std::uint16_t port = 0;
  auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || bad != std::errc() || end != digits.data() + digits.size())
    return refused();

  if (host.empty())
    return Address{{tcp::endpoint(asio::ip::address_v6::any(), port),
                    tcp::endpoint(asio::ip::address_v4::any(), port)}};
  if (host == "localhost") host = "127.0.0.1";
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  error_code failed;
  asio::ip::address address = asio::ip::make_address(host, failed);
  if (failed || address.is_v6() != bracketed) return refused();
  return Address{{tcp::endpoint(address, port)}};
}

error_code bind_and_listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code failed;
  acceptor.open(endpoint.protocol(), failed);
  if (failed) return failed;
  close_on_exec(acceptor.native_handle());
  acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  bool all = endpoint.address().is_v6() && endpoint.address().is_unspecified();
  if (all) acceptor.set_option(asio::ip::v6_only(false), failed);
  acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  return failed;
}

Result<tcp::acceptor> open_acceptor(asio::any_io_executor executor, const Address& address,
                                    std::string_view doing) {
  error_code failed;
  for (const tcp::endpoint& endpoint : address.candidates) {
    tcp::acceptor acceptor(executor);
    failed = bind_and_listen(acceptor, endpoint);
    if (!failed) return acceptor;
    bool unknown_here = failed == asio::error::address_family_not_supported ||
                        failed == boost::system::errc::address_not_available;
    if (!unknown_here) break;
  }
  return fail(failed, doing);
}

Async<Result<std::string>> read_some(tcp::socket& socket) {
  std::string bytes(4096, '\0');
  auto [failed, got] =
      co_await socket.async_read_some(asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  if (failed) co_return fail(failed);
  bytes.resize(got);
  co_return bytes;
}

Async<Result<void>> write_all(tcp::socket& socket, std::string bytes) {
  auto [failed, put] =
      co_await asio::async_write(socket, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  (void)put;
  if (failed) co_return fail(failed);
  co_return ok();
}

// Reads away what the peer still sends, so that closing does not reset what we have sent.
Async<Result<void>> read_away(tcp::socket& socket) {
  for (;;) {
    Result<std::string> bytes = co_await read_some(socket);
    if (!bytes) co_return ok();
  }
}

}  // namespace

class HttpEndpoint::Server {
public:
  Server(tcp::acceptor acceptor, Time& time, HttpEndpointLimits limits)
      : acceptor_(std::move(acceptor)),
        port_(acceptor_.local_endpoint().port()),
        time_(time),
        limits_(limits) {}

  Async<Result<void>> run();

  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return connections_.size(); }
  std::map<std::string, Handler, std::less<>> handlers;

private:
  struct Connection {
    tcp::socket socket;
    Instant since;     // of the state `idle`
    bool idle = true;  // waits for a request
  };
  using Connections = std::list<Connection>;

  Async<Result<void>> accept(TaskGroup* tasks);
  Async<Result<void>> serve(Connections::iterator at);
  Async<void> converse(Connection& connection);
  Async<Result<PageRequest>> read_request(Connection& connection, std::string& buffer, bool first);
  HttpReply reply_to(const PageRequest& request) const;
  void make_room();

  tcp::acceptor acceptor_;
  std::uint16_t port_;
  Time& time_;
  HttpEndpointLimits limits_;
  Connections connections_;
};

Async<Result<void>> HttpEndpoint::Server::run() {
  TaskGroup tasks(acceptor_.get_executor());
  tasks.spawn("accept", accept(&tasks));
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<void>> HttpEndpoint::Server::accept(TaskGroup* tasks) {
  struct Closing {
    tcp::acceptor& acceptor;
    ~Closing() {
      error_code ignored;
      acceptor.close(ignored);
    }
  } closing{acceptor_};
  for (;;) {
    auto [failed, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
    if (failed == asio::error::connection_aborted) continue;
    if (failed == asio::error::operation_aborted) throw boost::system::system_error(failed);
    if (failed) {  // most likely too many descriptors
      LOG_WARNING("Cannot accept a connection, retrying", {{"err", failed.message()}});
      co_await time_.sleep(1s);
      continue;
    }
    close_on_exec(socket.native_handle());
    make_room();
    connections_.push_back({std::move(socket), time_.now()});
    tasks->spawn("connection", serve(std::prev(connections_.end())));
  }
}

// Closes what has been idle longest, or, if nothing is, what has been busy longest.
void HttpEndpoint::Server::make_room() {
  auto open = [](const Connection& c) { return c.socket.is_open(); };
  auto number = static_cast<std::size_t>(std::ranges::count_if(connections_, open));
  if (number < limits_.connections) return;
  auto rank = [&](const Connection& c) {
    return std::tuple(!c.socket.is_open(), !c.idle, c.since);
  };
  error_code ignored;
  std::ranges::min_element(connections_, {}, rank)->socket.close(ignored);
}

Async<Result<void>> HttpEndpoint::Server::serve(Connections::iterator at) {
  struct Leaving {
    Connections& connections;
    Connections::iterator at;
    ~Leaving() { connections.erase(at); }
  } leaving{connections_, at};
  co_await converse(*at);
  co_return ok();
}

Async<void> HttpEndpoint::Server::converse(Connection& connection) {
  std::string buffer;
  for (bool first = true;; first = false) {
    connection.idle = buffer.empty();
    connection.since = time_.now();
    Result<PageRequest> request = co_await read_request(connection, buffer, first);
    if (!request) co_return;
    connection.idle = false;
    connection.since = time_.now();

    std::string text = render_page(*request, reply_to(*request));
    // The answer is sent to its end although we may be asked to stop meanwhile.
    co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation(),
                                                       asio::disable_cancellation());
    Result<void> sent =
        co_await within(time_, limits_.answer, write_all(connection.socket, std::move(text)));
    auto state = co_await asio::this_coro::cancellation_state;
    if (!sent || state.cancelled() != asio::cancellation_type::none) co_return;
    co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
    if (request->keep) continue;

    error_code ignored;
    connection.socket.shutdown(tcp::socket::shutdown_send, ignored);
    Result<void> gone = co_await within(time_, linger, read_away(connection.socket));
    (void)gone;
    co_return;
  }
}

// An error: nothing more is to be expected of this connection.
Async<Result<PageRequest>> HttpEndpoint::Server::read_request(Connection& connection,
                                                              std::string& buffer, bool first) {
  Duration limit = first || !buffer.empty() ? limits_.request : limits_.idle;
  Instant deadline = time_.now() + limit;
  for (;;) {
    if (!buffer.empty()) {
      std::optional<PageRequest> request = take_request(buffer, limits_.head);
      if (request) co_return *std::move(request);
    }
    auto bytes = co_await within(time_, deadline - time_.now(), read_some(connection.socket));
    if (!bytes) co_return std::move(bytes).failure();
    if (buffer.empty() && !first) deadline = time_.now() + limits_.request;
    connection.idle = false;
    buffer += *bytes;
  }
}

HttpReply HttpEndpoint::Server::reply_to(const PageRequest& request) const {
  switch (request.fault) {
    case 0: break;
    case 405: return {.status = 405, .body = "only GET and HEAD are served here\n"};
    case 431: return {.status = 431, .body = "the request's head is too large\n"};
    default: return {.status = 400, .body = "this is no request for this server\n"};
  }
  std::string_view target = request.target;
  std::size_t mark = std::min(target.find('?'), target.size());
  auto handler = handlers.find(target.substr(0, mark));
  if (handler == handlers.end()) return {.status = 404, .body = "404 page not found\n"};
  std::string_view query = mark < target.size() ? target.substr(mark + 1) : std::string_view{};
  try {
    return handler->second(query);
  } catch (const std::exception& e) {
    LOG_ERROR("A page could not be made", {{"path", handler->first}, {"err", e.what()}});
    return {.status = 500, .body = "internal error\n"};
  }
}

Result<HttpEndpoint> HttpEndpoint::listen(asio::any_io_executor executor, Time& time,
                                          const std::string& address, std::string_view flag,
                                          HttpEndpointLimits limits) {
  TRY(Address parsed, parse_address(address, flag));
  auto doing = fmt::format("cannot listen on {} ({})", address, flag);
  TRY(tcp::acceptor acceptor, open_acceptor(std::move(executor), parsed, doing));
  return HttpEndpoint(std::make_unique<Server>(std::move(acceptor), time, limits));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server) : server_(std::move(server)) {}
HttpEndpoint::HttpEndpoint(HttpEndpoint&&) noexcept = default;
HttpEndpoint& HttpEndpoint::operator=(HttpEndpoint&&) noexcept = default;
HttpEndpoint::~HttpEndpoint() = default;

void HttpEndpoint::on_get(std::string path, Handler handler) {
  server_->handlers.insert_or_assign(std::move(path), std::move(handler));
}

Async<Result<void>> HttpEndpoint::run() {
  return server_->run();
}

std::uint16_t HttpEndpoint::port() const {
  return server_->port();
}

std::size_t HttpEndpoint::connections() const {
  return server_->connections();
}

}  // namespace nvdra::k8s
