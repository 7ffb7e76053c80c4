#include "k8s/token_source.hpp"

#include "base/log.hpp"
#include "base/try.hpp"
#include "k8s/status.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::k8s {
namespace {

std::string trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(space) - begin + 1));
}

bool fits_a_header(std::string_view token) {
  return std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

TokenSource::TokenSource(std::string token, std::string file)
    : token_(trimmed(token)), file_(std::move(file)) {}

void TokenSource::distrust() {
  looked_.reset();
  stamp_ = {};
}

Result<std::string> TokenSource::current(Instant now) {
  if (!file_.empty() && (!looked_ || now - *looked_ >= 1s)) {
    looked_ = now;
    Result<void> done = read();
    if (!done) {
      std::string problem = fmt::format("read token file {}: {}", file_, done.error().text());
      if (token_.empty()) return fail(Errc::not_sent, problem);
      LOG_INFO(1, "Cannot read the token file, going on with the last token", {{"err", problem}});
    }
  }
  if (!fits_a_header(token_))
    return fail(Errc::bad_config, "the token holds characters that no token has");
  return token_;
}

Result<void> TokenSource::read() {
  TRY(FileStamp found, stamp_of(file_));
  if (found == stamp_) return ok();
  TRY(std::string text, read_text_file(file_));
  std::string token = trimmed(text);
  if (token.empty()) return refuse("the file is empty");
  token_ = std::move(token);
  stamp_ = found;
  return ok();
}

}  // namespace nvdra::k8s
