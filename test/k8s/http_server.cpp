#include "k8s/http_server.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <openssl/ssl.h>

namespace nvdra::fake {
namespace {

using asio::ip::tcp;
constexpr auto token = asio::as_tuple(asio::use_awaitable_t<asio::any_io_executor>());

std::size_t body_length(const std::string& head) {
  std::size_t at = head.find("Content-Length: ");
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
}

template <class Stream>
class RealSession final : public Session {
public:
  template <class... Args>
  explicit RealSession(Args&&... args) : stream(std::forward<Args>(args)...) {}
  ~RealSession() override {
    boost::system::error_code ignored;
    if (reset_) stream.lowest_layer().set_option(asio::socket_base::linger(true, 0), ignored);
  }

  Async<std::optional<std::string>> request() override {
    for (;;) {
      std::size_t end = read_.find("\r\n\r\n");
      if (end != std::string::npos) {
        std::size_t size = end + 4 + body_length(read_.substr(0, end + 4));
        if (read_.size() >= size) {
          std::string request = read_.substr(0, size);
          read_.erase(0, size);
          co_return request;
        }
      }
      std::size_t old = read_.size();
      read_.resize(old + 16384);
      auto [failed, count] =
          co_await stream.async_read_some(asio::buffer(read_.data() + old, 16384), token);
      read_.resize(old + count);
      if (failed) co_return std::nullopt;
    }
  }
  Async<void> write(std::string bytes) override {
    auto [failed, count] = co_await asio::async_write(stream, asio::buffer(bytes), token);
    (void)failed, (void)count;
  }
  void reset_at_end() override { reset_ = true; }

  Stream stream;

private:
  std::string read_;
  bool reset_ = false;
};

using PlainSession = RealSession<tcp::socket>;
using TlsSession = RealSession<asio::ssl::stream<tcp::socket>>;

}  // namespace

struct HttpServer::State {
  State(asio::io_context& loop, const std::string& address)
      : acceptor(loop, tcp::endpoint(asio::ip::make_address(address), 0)),
        context(asio::ssl::context::tls_server) {}
  tcp::acceptor acceptor;
  asio::ssl::context context;
  Handler handler;
  bool tls = false;
  int accepted = 0;
};

namespace {

void configure(asio::ssl::context& context, const ServerTls& tls) {
  SSL_CTX* native = context.native_handle();
  SSL_CTX_use_certificate(native, tls.identity.certificate.get());
  SSL_CTX_use_PrivateKey(native, tls.identity.key.get());
  if (!tls.client_authority_pem.empty()) {
    context.add_certificate_authority(asio::buffer(tls.client_authority_pem));
    context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  }
  if (tls.old) {
    SSL_CTX_set_min_proto_version(native, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(native, TLS1_1_VERSION);
    SSL_CTX_set_cipher_list(native, "ALL:@SECLEVEL=0");
  }
}

}  // namespace

HttpServer::HttpServer(asio::io_context& loop, Handler handler, std::optional<ServerTls> tls,
                       const std::string& address)
    : state_(std::make_shared<State>(loop, address)) {
  state_->handler = std::move(handler);
  state_->tls = tls.has_value();
  if (tls) configure(state_->context, *tls);
  port_ = std::to_string(state_->acceptor.local_endpoint().port());

  static constexpr auto serve = [](std::shared_ptr<State> state, tcp::socket socket,
                                   int number) -> Async<void> {
    SessionPtr session;
    if (state->tls) {
      auto secure = std::make_shared<TlsSession>(std::move(socket), state->context);
      auto [failed] =
          co_await secure->stream.async_handshake(asio::ssl::stream_base::server, token);
      if (failed) co_return;
      session = secure;
    } else {
      session = std::make_shared<PlainSession>(std::move(socket));
    }
    session->number = number;
    co_await state->handler(session);
  };
  static constexpr auto accept = [](std::shared_ptr<State> state) -> Async<void> {
    for (;;) {
      auto [failed, socket] = co_await state->acceptor.async_accept(token);
      if (failed) co_return;
      int number = ++state->accepted;
      asio::co_spawn(state->acceptor.get_executor(), serve(state, std::move(socket), number),
                     asio::detached);
    }
  };
  asio::co_spawn(loop, accept(state_), asio::detached);
}

HttpServer::~HttpServer() {
  stop();
}

int HttpServer::accepted() const {
  return state_->accepted;
}

void HttpServer::stop() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
}

std::string answer_text(const std::string& status_line, const std::string& headers,
                        const std::string& body) {
  return "HTTP/1.1 " + status_line + "\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string ok_answer(const std::string& body) {
  return answer_text("200 OK", "", body);
}

}  // namespace nvdra::fake
