#include "sandbox/api_websocket.hpp"

#include "base/try.hpp"
#include "sandbox/store_token.hpp"

#include <fmt/format.h>
#include <openssl/sha.h>

namespace nvdra::sandbox {
namespace {

enum Opcode { continuation = 0, text = 1, binary = 2, closing = 8, ping = 9, pong = 10 };

constexpr std::size_t message_limit = 1u << 20;

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string frame_head(int opcode, std::size_t size) {
  std::string head{static_cast<char>(0x80 | opcode)};
  if (size < 126) return head += static_cast<char>(size);
  int bytes = size < 65536 ? 2 : 8;
  head += static_cast<char>(bytes == 2 ? 126 : 127);
  for (int i = bytes - 1; i >= 0; --i) head += static_cast<char>(size >> (8 * i) & 0xff);
  return head;
}

}  // namespace

std::string websocket_accept(std::string_view key) {
  std::string text = fmt::format("{}258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
  unsigned char digest[SHA_DIGEST_LENGTH];
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64({reinterpret_cast<const char*>(digest), sizeof digest});
}

Async<Result<void>> WebSocket::accept(Connection& connection, const Request& request,
                                      std::string protocol) {
  std::string head = fmt::format(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: {}\r\n\r\n",
      websocket_accept(request.header("sec-websocket-key")), protocol);
  Result<void> written = co_await connection.write_raw(std::move(head));
  co_return written;
}

// A whole frame from the buffer, unmasked.
std::optional<WebSocket::Frame> WebSocket::take_frame() {
  if (buffered_.size() < 2) return std::nullopt;
  auto first = static_cast<unsigned char>(buffered_[0]);
  auto second = static_cast<unsigned char>(buffered_[1]);
  std::size_t at = 2;
  std::uint64_t size = second & 0x7f;
  std::size_t extra = size == 126 ? 2 : (size == 127 ? 8 : 0);
  std::size_t mask = second & 0x80 ? 4 : 0;
  if (buffered_.size() < at + extra + mask) return std::nullopt;
  if (extra > 0) size = big_endian(std::string_view(buffered_).substr(at, extra));
  at += extra;
  if (size > message_limit) return Frame{closing, true, {}};
  if (buffered_.size() < at + mask + size) return std::nullopt;
  std::string payload = buffered_.substr(at + mask, size);
  for (std::size_t i = 0; mask > 0 && i < payload.size(); ++i)
    payload[i] = static_cast<char>(payload[i] ^ buffered_[at + i % 4]);
  buffered_.erase(0, at + mask + size);
  return Frame{first & 0x0f, (first & 0x80) != 0, std::move(payload)};
}

Async<Result<std::optional<std::string>>> WebSocket::read() {
  std::string message;
  for (;;) {
    std::optional<Frame> frame = take_frame();
    if (!frame) {
      CO_TRY(std::string more, co_await connection_.read_some());
      if (more.empty()) co_return std::optional<std::string>();
      buffered_ += more;
      continue;
    }
    if (frame->opcode == closing) co_return std::optional<std::string>();
    if (frame->opcode == ping) {
      CO_TRY_VOID(co_await send(pong, std::move(frame->payload)));
      continue;
    }
    if (frame->opcode == pong) continue;
    message += frame->payload;
    if (message.size() > message_limit) co_return std::optional<std::string>();
    if (frame->last) co_return std::optional(std::move(message));
  }
}

Async<Result<void>> WebSocket::write(std::string payload) {
  Result<void> sent = co_await send(binary, std::move(payload));
  co_return sent;
}

Async<Result<void>> WebSocket::close() {
  Result<void> sent = co_await send(closing, std::string("\x03\xe8", 2));
  co_return sent;
}

Async<Result<void>> WebSocket::send(int opcode, std::string payload) {
  unsent_ += frame_head(opcode, payload.size()) + payload;
  if (sending_) co_return ok();
  sending_ = true;
  Result<void> sent = ok();
  while (sent && !unsent_.empty())
    sent = co_await connection_.write_raw(std::exchange(unsent_, {}));
  sending_ = false;
  co_return sent;
}

}  // namespace nvdra::sandbox
