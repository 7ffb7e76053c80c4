#include "served.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <charconv>

namespace nvdra::sandbox {
namespace {

using asio::ip::tcp;
constexpr auto as_value = asio::as_tuple(asio::use_awaitable);

Async<tcp::socket> send(std::uint16_t port, std::string text) {
  auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  co_await socket.async_connect(endpoint, asio::use_awaitable);
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
  co_return socket;
}

// The bytes that have come; empty at the end.
Async<std::string> more(tcp::socket& socket) {
  std::string chunk(8192, '\0');
  auto [failed, count] = co_await socket.async_read_some(asio::buffer(chunk), as_value);
  chunk.resize(failed ? 0 : count);
  co_return chunk;
}

Async<Reply> exchange(std::uint16_t port, std::string text) {
  tcp::socket socket = co_await send(port, std::move(text));
  std::string raw;
  for (;;) {
    std::string chunk = co_await more(socket);
    if (chunk.empty()) break;
    raw += chunk;
  }
  Reply reply;
  std::size_t end = raw.find("\r\n\r\n");
  if (end == std::string::npos) co_return reply;
  reply.head = raw.substr(0, end);
  reply.body = raw.substr(end + 4);
  std::size_t length = reply.head.find("Content-Length: ");
  bool whole = length != std::string::npos &&
               reply.body.size() == std::stoul(reply.head.substr(length + 16));
  if (whole) reply.status = std::stoi(reply.head.substr(9, 3));
  boost::system::error_code ignored;
  reply.object = boost::json::parse(reply.body, ignored);
  co_return reply;
}

Async<std::unique_ptr<Stream>> open_stream(std::uint16_t port, std::string text) {
  tcp::socket socket = co_await send(port, std::move(text));
  co_return std::make_unique<Stream>(std::move(socket));
}

}  // namespace

Async<std::string> Stream::line() {
  for (;;) {
    if (std::size_t end = text_.find('\n'); end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      co_return line;
    }
    // raw_: "HTTP/1.1 …\r\n\r\n", then "SIZE\r\n…\r\n" chunks.
    if (raw_.starts_with("HTTP/"))
      if (std::size_t head = raw_.find("\r\n\r\n"); head != std::string::npos)
        raw_.erase(0, head + 4);
    std::size_t size = 0;
    std::size_t mark = raw_.find("\r\n");
    bool chunk = !raw_.starts_with("HTTP/") && mark != std::string::npos;
    if (chunk) std::from_chars(raw_.data(), raw_.data() + mark, size, 16);
    if (chunk && raw_.size() >= mark + size + 4) {
      if (size == 0) co_return std::string();
      text_ += raw_.substr(mark + 2, size);
      raw_.erase(0, mark + size + 4);
      continue;
    }
    std::string bytes = co_await more(socket_);
    if (bytes.empty()) co_return std::string();
    raw_ += bytes;
  }
}

Served::Served(Registry::Options options, ApiServer::Options server_options)
    : World(std::move(options)) {
  auto listening = ApiServer::listen(loop.get_executor(), registry, std::move(server_options));
  if (!listening) throw std::runtime_error(listening.error().text());
  server = *std::move(listening);
  asio::co_spawn(loop, server->run(),
                 asio::bind_cancellation_slot(
                     stop_.slot(), [this](std::exception_ptr, Result<void>) { ended_ = true; }));
}

Served::~Served() {
  stop_.emit(asio::cancellation_type::terminal);
  loop.restart();
  while (!ended_ && loop.run_one_for(std::chrono::seconds(5)) > 0) {
  }
}

Reply Served::call(std::string method, std::string target, std::string body, std::string type,
                   std::string accept) {
  for (char& c : body)
    if (c == '\'') c = '"';
  std::string text = method + " " + target +
                     " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: " + accept +
                     "\r\nContent-Type: " + type +
                     "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  return fake::run(loop, exchange(server->port(), std::move(text)));
}

std::unique_ptr<Stream> Served::open(std::string target) {
  std::string text = "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n";
  return fake::run(loop, open_stream(server->port(), std::move(text)));
}

std::string Served::next_line(Stream& stream) {
  return fake::run(loop, stream.line());
}

}  // namespace nvdra::sandbox
