// Certificates made at run time, valid for an hour.
#pragma once

#include <memory>
#include <string>

struct x509_st;
struct evp_pkey_st;

namespace nvdra::fake {

struct Identity {
  std::string certificate_pem;
  std::string key_pem;
  std::shared_ptr<x509_st> certificate;
  std::shared_ptr<evp_pkey_st> key;
};

Identity make_authority(const std::string& name);
// `names`: subject alternative names as OpenSSL writes them: "IP:127.0.0.1,DNS:api.test".
Identity issue(const Identity& authority, const std::string& common_name, const std::string& names);

}  // namespace nvdra::fake
