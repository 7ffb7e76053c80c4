#include "sandbox/api_certificate.hpp"

#include "base/deleter.hpp"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>

namespace nvdra::sandbox {
namespace {

using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;

constexpr long ten_years = 10L * 365 * 24 * 3600;

bool add_extension(X509* to, int kind, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
  return extension && X509_add_ext(to, extension.get(), -1) == 1;
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string text = "DNS:kubernetes,DNS:kubernetes.default.svc";
  for (const std::string& name : names) text += ",IP:" + name;
  return text;
}

bool fill(X509* certificate, EVP_PKEY* key, const std::vector<std::string>& names) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* title = reinterpret_cast<const unsigned char*>("nvdra-sandbox");
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), ten_years) &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, title, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1 &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         add_extension(certificate, NID_subject_alt_name, alternative_names(names)) &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

Result<std::string> use_own_certificate(ssl_ctx_st* context,
                                        const std::vector<std::string>& names) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const bool used = key && certificate && fill(certificate.get(), key.get(), names) &&
                    SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
                    SSL_CTX_use_PrivateKey(context, key.get()) == 1;
  const Bio text(BIO_new(BIO_s_mem()));
  if (!used || !text || PEM_write_bio_X509(text.get(), certificate.get()) != 1)
    return refuse("OpenSSL cannot make a certificate for the sandbox's API server");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(size));
}

}  // namespace nvdra::sandbox
