#include "k8s/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace nvdra::fake {
namespace {

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(what);
}

std::string taken(BIO* from) {
  char* bytes = nullptr;
  long size = BIO_get_mem_data(from, &bytes);
  std::string text(bytes, static_cast<std::size_t>(size));
  BIO_free(from);
  return text;
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  must(extension != nullptr, "extension");
  must(X509_add_ext(certificate, extension, -1) == 1, "add extension");
  X509_EXTENSION_free(extension);
}

Identity make(const std::string& name, const std::string& names, const Identity* authority) {
  static long serial = 1;
  Identity made;
  made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
  made.certificate.reset(X509_new(), X509_free);
  X509* certificate = made.certificate.get();
  must(made.key && certificate, "key");
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* issuer = authority ? authority->certificate.get() : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  extend(certificate, issuer, NID_basic_constraints, authority ? "CA:FALSE" : "critical,CA:TRUE");
  // Authorities of one name, old and new, are told apart by their key identifiers.
  extend(certificate, issuer, NID_subject_key_identifier, "hash");
  if (authority) extend(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  if (!names.empty()) extend(certificate, issuer, NID_subject_alt_name, names);
  EVP_PKEY* signer = authority ? authority->key.get() : made.key.get();
  must(X509_sign(certificate, signer, EVP_sha256()) > 0, "sign");

  BIO* out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, certificate);
  made.certificate_pem = taken(out);
  out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(out, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  made.key_pem = taken(out);
  return made;
}

}  // namespace

Identity make_authority(const std::string& name) {
  return make(name, "", nullptr);
}

Identity issue(const Identity& authority, const std::string& common_name,
               const std::string& names) {
  return make(common_name, names, &authority);
}

}  // namespace nvdra::fake
