// The API server as pods see it: HTTPS with a certificate of the cluster's own authority, which a
// pod finds in its service account's folder. Everything is passed on to the plain HTTP server.
#pragma once

#include "base/async.hpp"
#include "base/fd.hpp"

#include <memory>
#include <string>
#include <vector>

namespace nvdra::sandbox {

class ApiFront {
public:
  // Serves `listening` for the server at 127.0.0.1:`to`. The certificate is for the IPv4 addresses
  // `names`.
  static Result<std::unique_ptr<ApiFront>> make(asio::any_io_executor executor, Fd listening,
                                                std::uint16_t to,
                                                const std::vector<std::string>& names);
  ~ApiFront();

  const std::string& authority() const { return authority_; }  // PEM
  std::uint16_t port() const;

  // Until cancelled.
  Async<Result<void>> run();

private:
  struct Parts;
  ApiFront(std::unique_ptr<Parts> parts, std::string authority);

  std::unique_ptr<Parts> parts_;
  std::string authority_;
};

}  // namespace nvdra::sandbox
