// TLS towards the API server: whom we believe, who we are. The OpenSSL side of the transport.
//   * TLS 1.2 or newer. No configuration file of OpenSSL is read.
//   * Only the authorities of the config are believed; each of them is an end of the chain, also
//     if it is itself signed by another (as Kubernetes clients do it).
//   * The peer's certificate must be for the config's server name (or host): a DNS name, or an IP
//     address among its subject alternative names.
#pragma once

#include "k8s/config.hpp"

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace nvdra::k8s {

class Tls {
public:
  // Errors: bad_config, with what is wrong in which part.
  static Result<Tls> make(const Config& config);

  ssl_ctx_st* context() const { return context_.get(); }
  // Sets the name to be verified and, unless it is an address, to be asked for (SNI).
  void prepare(ssl_st* connection) const;
  // What failed in a handshake, in words: "certificate verify failed: … for …".
  std::string explain(ssl_st* connection, const boost::system::error_code& failed) const;

private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::string name_;
  bool is_address_ = false;
  bool verify_ = true;
};

}  // namespace nvdra::k8s
