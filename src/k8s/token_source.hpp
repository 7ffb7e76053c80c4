// The bearer token: given once, or in a file that is rotated while we run.
#pragma once

#include "base/time.hpp"
#include "k8s/text_file.hpp"

#include <optional>
#include <string>

namespace nvdra::k8s {

class TokenSource {
public:
  // `file` wins over `token`; both empty = no token.
  TokenSource(std::string token, std::string file);

  // The token now, without white space around it; "" if there is none. The file is looked at most
  // once a second and read when it was replaced. When it cannot be read, the last token serves on;
  // an error (not_sent) only if there has never been one.
  Result<std::string> current(Instant now);
  // The server did not believe the token: read the file again at the next call.
  void distrust();
  // There is a file, so the token may become better.
  bool renewable() const { return !file_.empty(); }

private:
  Result<void> read();

  std::string token_;
  std::string file_;
  FileStamp stamp_;
  std::optional<Instant> looked_;
};

}  // namespace nvdra::k8s
