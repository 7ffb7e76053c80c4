#include "k8s/config.hpp"

#include "base/try.hpp"
#include "k8s/kubeconfig.hpp"
#include "k8s/status.hpp"
#include "k8s/text_file.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace nvdra::k8s {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Failure not_in_cluster(std::string_view why) {
  return fail(
      Errc::bad_config,
      fmt::format("no in-cluster configuration: {}; outside a cluster give --kubeconfig", why));
}

}  // namespace

Result<Config> in_cluster_config(const std::string& service_account_folder) {
  Config config;
  config.host = environment("KUBERNETES_SERVICE_HOST");
  config.port = environment("KUBERNETES_SERVICE_PORT");
  if (config.host.empty() || config.port.empty())
    return not_in_cluster(
        fmt::format("the environment variable {} is not set",
                    config.host.empty() ? "KUBERNETES_SERVICE_HOST" : "KUBERNETES_SERVICE_PORT"));
  if (config.host.front() == '[' && config.host.back() == ']')
    config.host = config.host.substr(1, config.host.size() - 2);

  config.token_file = service_account_folder + "/token";
  std::string ca_file = service_account_folder + "/ca.crt";
  Result<std::string> token = read_text_file(config.token_file);
  if (!token)
    return not_in_cluster(fmt::format("the service account's token {} cannot be read: {}",
                                      config.token_file, token.error().text()));
  Result<std::string> ca = read_text_file(ca_file);
  if (!ca)
    return not_in_cluster(
        fmt::format("the cluster's authority {} cannot be read: {}", ca_file, ca.error().text()));
  config.ca_pem = *std::move(ca);
  Result<std::string> space = read_text_file(service_account_folder + "/namespace");
  if (space && !space->empty()) config.space = *std::move(space);
  return config;
}

Result<Config> read_kubeconfig(const std::string& path, const std::string& context) {
  Result<std::string> text = read_text_file(path);
  if (!text)
    return fail(Errc::bad_config, fmt::format("kubeconfig {}: {}", path, text.error().text()));
  std::size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  Result<Config> config = parse_kubeconfig(*text, folder, context);
  if (!config) return std::move(config).failure().during("kubeconfig " + path);
  return config;
}

Result<Config> load_config(const std::string& kubeconfig) {
  return kubeconfig.empty() ? in_cluster_config() : read_kubeconfig(kubeconfig);
}

}  // namespace nvdra::k8s
