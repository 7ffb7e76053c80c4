#include "roles/daemon/status_socket.hpp"

#include "base/log.hpp"
#include "base/task_group.hpp"
#include "base/try.hpp"
#include "base/within.hpp"
#include "k8s/http_page.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <fmt/format.h>

#include <charconv>

namespace nvdra::roles::daemon {
namespace {

using Local = asio::local::stream_protocol;
using boost::system::error_code;

constexpr Duration one_talk = 2s;
constexpr std::size_t longest_request = 4096;
constexpr std::size_t longest_answer = 1u << 20;

Local::endpoint endpoint_of(const std::string& name) {
  return Local::endpoint(std::string(1, '\0') + name);
}

// With a connection that says nothing the probe loses, not the daemon.
constexpr std::size_t most_talks = 32;

Async<Result<void>> answer(std::shared_ptr<Local::socket> socket, const Pages* pages) {
  std::string buffer;
  std::optional<k8s::PageRequest> request;
  while (!(request = k8s::take_request(buffer, longest_request))) {
    std::string bytes(longest_request, '\0');
    auto [failed, size] =
        co_await socket->async_read_some(asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
    if (failed) co_return ok();
    buffer.append(bytes, 0, size);
  }
  k8s::HttpReply reply{.status = request->fault, .body = "this is no request for this socket\n"};
  if (request->fault == 0) reply = (*pages)(request->target);
  request->keep = false;
  const std::string text = k8s::render_page(*request, reply);
  auto [failed, size] =
      co_await asio::async_write(*socket, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
  (void)failed, (void)size;
  co_return ok();
}

// Somebody who hangs up or is silent is no failure of ours.
Async<Result<void>> talk(Time* time, std::shared_ptr<Local::socket> socket, const Pages* pages) {
  Result<void> done = co_await within(*time, one_talk, answer(std::move(socket), pages));
  (void)done;
  co_return ok();
}

Async<Result<void>> accept_all(Local::acceptor* acceptor, Time* time, const Pages* pages,
                               TaskGroup* tasks) {
  for (;;) {
    auto [failed, socket] = co_await acceptor->async_accept(asio::as_tuple(asio::use_awaitable));
    if (failed == asio::error::operation_aborted) throw boost::system::system_error(failed);
    if (failed) {
      LOG_INFO(1, "Cannot accept a connection, retrying", {{"err", failed.message()}});
      co_await time->sleep(1s);
      continue;
    }
    if (tasks->size() > most_talks) continue;
    tasks->spawn("talk", talk(time, std::make_shared<Local::socket>(std::move(socket)), pages));
  }
}

Async<Result<std::string>> exchange(std::string name, std::string path) {
  Local::socket socket(co_await asio::this_coro::executor);
  auto [unconnected] =
      co_await socket.async_connect(endpoint_of(name), asio::as_tuple(asio::use_awaitable));
  if (unconnected) co_return fail(unconnected, "connect");
  const std::string request = fmt::format("GET {} HTTP/1.0\r\n\r\n", path);
  auto [unsent, sent] = co_await asio::async_write(socket, asio::buffer(request),
                                                   asio::as_tuple(asio::use_awaitable));
  (void)sent;
  if (unsent) co_return fail(unsent, "send");
  std::string text;
  std::string bytes(longest_request, '\0');
  while (text.size() < longest_answer) {
    auto [failed, size] =
        co_await socket.async_read_some(asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
    if (failed == asio::error::eof) break;
    if (failed) co_return fail(failed, "read");
    text.append(bytes, 0, size);
  }
  co_return text;
}

}  // namespace

Async<Result<void>> serve_status(asio::any_io_executor executor, Time& time, std::string name,
                                 Pages pages) {
  Local::acceptor acceptor(executor);
  error_code failed;
  acceptor.open(Local(), failed);
  if (!failed) acceptor.bind(endpoint_of(name), failed);
  if (!failed) acceptor.listen(Local::acceptor::max_listen_connections, failed);
  if (failed) co_return fail(failed, "listen on the status socket @" + name);
  TaskGroup tasks(executor);
  tasks.spawn("accept", accept_all(&acceptor, &time, &pages, &tasks));
  Result<void> ended = co_await tasks.join();
  co_return ended;
}

Async<Result<k8s::HttpReply>> ask_status(Time& time, std::string name, std::string path) {
  CO_TRY(std::string text,
         co_await within(time, one_talk, exchange(std::move(name), std::move(path))));
  constexpr std::string_view begin = "HTTP/1.1 ";
  const auto body = text.find("\r\n\r\n");
  k8s::HttpReply reply;
  reply.status = 0;
  if (text.starts_with(begin) && body != std::string::npos) {
    std::from_chars(text.data() + begin.size(), text.data() + body, reply.status);
    reply.body = text.substr(body + 4);
  }
  if (reply.status == 0) co_return refuse("the running daemon's answer is not understood");
  co_return reply;
}

}  // namespace nvdra::roles::daemon
