#include "k8s/tls.hpp"

#include "base/deleter.hpp"
#include "base/try.hpp"
#include "k8s/status.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace nvdra::k8s {
namespace {

using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

Failure unusable(std::string_view what) {
  // The innermost reason, if OpenSSL has one.
  unsigned long code = ERR_peek_last_error();
  const char* reason = code ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return fail(Errc::bad_config, reason ? fmt::format("{} ({})", what, reason) : std::string(what));
}

Bio reader(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Certificate next_certificate(BIO* from) {
  Certificate read(PEM_read_bio_X509(from, nullptr, nullptr, nullptr));
  if (!read && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) ERR_clear_error();
  return read;
}

// Never asks the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Result<void> trust(SSL_CTX* context, const std::string& pem) {
  if (pem.empty())
    return fail(Errc::bad_config,
                "no certificate authority to verify the API server with: set one, or "
                "insecure-skip-tls-verify");
  Bio from = reader(pem);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (Certificate authority = next_certificate(from.get())) {
    if (X509_STORE_add_cert(store, authority.get()) != 1)
      return unusable("the certificate authority cannot be used");
    ++count;
  }
  if (ERR_peek_last_error() != 0) return unusable("the certificate authority is damaged");
  if (count == 0) return unusable("the certificate authority holds no PEM certificate");
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return ok();
}

Result<void> identify(SSL_CTX* context, const Config& config) {
  if (config.client_certificate_pem.empty() && config.client_key_pem.empty()) return ok();
  if (config.client_key_pem.empty()) return unusable("the client certificate has no key");
  if (config.client_certificate_pem.empty()) return unusable("the client key has no certificate");

  Bio from = reader(config.client_certificate_pem);
  Certificate own = next_certificate(from.get());
  if (!own) return unusable("the client certificate holds no PEM certificate");
  if (SSL_CTX_use_certificate(context, own.get()) != 1)
    return unusable("the client certificate cannot be used");
  while (Certificate link = next_certificate(from.get())) {
    if (SSL_CTX_add1_chain_cert(context, link.get()) != 1)
      return unusable("the client certificate's chain cannot be used");
  }
  if (ERR_peek_last_error() != 0) return unusable("the client certificate's chain is damaged");

  Bio key_from = reader(config.client_key_pem);
  Key key(PEM_read_bio_PrivateKey(key_from.get(), nullptr, no_passphrase, nullptr));
  if (!key)
    return unusable("the client key cannot be read: a PEM key without passphrase is needed");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return unusable("the client key does not belong to the client certificate");
  return ok();
}

bool is_address(const std::string& name) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET, name.c_str(), &parsed) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &parsed) == 1;
}

}  // namespace

void Tls::Free::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

Result<Tls> Tls::make(const Config& config) {
  // Its configuration file could ask for modules, which a static program cannot load.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  ERR_clear_error();
  Tls tls;
  tls.context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* context = tls.context();
  if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
    return unusable("TLS cannot be set up");
  // One SSL record buffer less per idle connection.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);

  tls.verify_ = config.verify;
  tls.name_ = config.server_name.empty() ? config.host : config.server_name;
  tls.is_address_ = is_address(tls.name_);
  SSL_CTX_set_verify(context, tls.verify_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (tls.verify_) {
    TRY_VOID(trust(context, config.ca_pem));
  }
  TRY_VOID(identify(context, config));
  return tls;
}

void Tls::prepare(ssl_st* connection) const {
  if (!is_address_) SSL_set_tlsext_host_name(connection, name_.c_str());
  if (!verify_) return;
  X509_VERIFY_PARAM* verified = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(verified, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (is_address_) {
    X509_VERIFY_PARAM_set1_ip_asc(verified, name_.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(verified, name_.c_str(), name_.size());
  }
}

std::string Tls::explain(ssl_st* connection, const boost::system::error_code& failed) const {
  ERR_clear_error();
  long result = SSL_get_verify_result(connection);
  if (!verify_ || result == X509_V_OK) return "TLS: " + failed.message();
  return fmt::format("TLS: the certificate of the server is not accepted for {}: {}", name_,
                     X509_verify_cert_error_string(result));
}

}  // namespace nvdra::k8s
