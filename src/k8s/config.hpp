// Where the API server is and how to prove who we are.
#pragma once

#include "base/json.hpp"

#include <string>

namespace nvdra::k8s {

struct Config {
  std::string host;  // name or IP, IPv6 without brackets
  std::string port;
  bool tls = true;
  std::string path_prefix = {};  // "/k8s/clusters/x" of server URLs that have one
  std::string server_name = {};  // for SNI and verification; "" = host
  std::string ca_pem = {};       // trusted authorities
  bool verify = true;            // false: insecure-skip-tls-verify
  std::string client_certificate_pem = {};
  std::string client_key_pem = {};
  std::string token = {};
  std::string token_file = {};    // re-read when it changes; wins over `token`
  std::string space = "default";  // namespace of the context or of the service account
};

// In-cluster: KUBERNETES_SERVICE_HOST/PORT and the service account folder. The error says which of
// the two is missing and that --kubeconfig is the other way.
Result<Config> in_cluster_config(
    const std::string& service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount");

// A kubeconfig file (cluster-side.md 4.1 --kubeconfig). `context` "" = current-context. Inline data
// and files, token, tokenFile, client certificates, tls-server-name, insecure-skip-tls-verify,
// IPv6. Errors name the file, the context and the field; what we do not support (exec,
// auth-provider, proxy-url, username/password, impersonation) is named.
Result<Config> read_kubeconfig(const std::string& path, const std::string& context = {});

// kubeconfig path "" = in-cluster.
Result<Config> load_config(const std::string& kubeconfig);

}  // namespace nvdra::k8s
