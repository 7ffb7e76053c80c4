// The bytes of one HTTP/1.1 answer → status, a few header fields, body. Pure (Beast's parser
// inside).
#pragma once

#include "k8s/status.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace nvdra::k8s {

class HttpAnswerParser {
public:
  // `body_limit` nullopt: a stream of any size.
  explicit HttpAnswerParser(std::optional<std::size_t> body_limit);
  ~HttpAnswerParser();

  // Takes what it can of `bytes` and says how much; the rest must be given again with what follows.
  // Every piece of the body is available at once (body()). Errors: malformed_answer.
  Result<std::size_t> put(std::string_view bytes);
  // The connection ended. Errors: disconnected, if the answer was not complete.
  Result<void> put_end();

  bool begun() const;         // at least one byte has come
  bool headers_done() const;  // of the real answer; interim ones (1xx) are passed over
  bool done() const;
  // After headers_done():
  int status() const;
  std::optional<Duration> retry_after() const;
  bool keep_alive() const;
  // What has come of the body since the last call.
  std::string take_body();

private:
  class Parser;
  std::optional<std::size_t> body_limit_;
  std::unique_ptr<Parser> parser_;
  std::string body_;
  bool begun_ = false;
};

}  // namespace nvdra::k8s
