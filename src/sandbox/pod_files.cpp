#include "sandbox/pod_files.hpp"

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/try.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace nvdra::sandbox {
namespace {

constexpr std::string_view account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

// In place: a container that still runs has the file mounted.
Result<void> put(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno_failure("write " + path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return errno_failure("write " + path);
  return ok();
}

Result<cdi::Mount> put_account(const std::string& folder, const Json& pod, const PodApi& api) {
  const std::string account = folder + "/serviceaccount";
  TRY_VOID(make_directories(account, 0755));
  TRY_VOID(put(account + "/ca.crt", api.authority));
  TRY_VOID(put(account + "/namespace", text_or_empty(pod, "metadata/namespace")));
  std::string_view name = text_or_empty(pod, "spec/serviceAccountName");
  if (name.empty()) name = "default";
  TRY_VOID(put(account + "/token",
               fmt::format("sandbox.{}.{}", name, text_or_empty(pod, "metadata/uid"))));
  return cdi::Mount{account, std::string(account_folder), {"ro"}};
}

}  // namespace

std::string hosts_text(std::string_view address, std::string_view host_name) {
  return fmt::format(
      "# Kubernetes-managed hosts file.\n"
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::\tip6-localnet\n"
      "fe00::\tip6-mcastprefix\n"
      "fe00::1\tip6-allnodes\n"
      "fe00::2\tip6-allrouters\n"
      "{}\t{}\n",
      address, host_name);
}

std::string resolver_text(const Json& pod) {
  const std::string_view space = text_or_empty(pod, "metadata/namespace");
  std::string options;
  bool ndots = false;
  for (const Json& option : array_or_empty(pod, "spec/dnsConfig/options")) {
    const std::string_view name = text_or_empty(option, "name");
    const std::string_view value = text_or_empty(option, "value");
    ndots |= name == "ndots";
    options += value.empty() ? fmt::format(" {}", name) : fmt::format(" {}:{}", name, value);
  }
  if (!ndots) options += " ndots:5";
  return fmt::format(
      "search {}.svc.cluster.local svc.cluster.local cluster.local\n"
      "nameserver 10.96.0.10\noptions{}\n",
      space, options);
}

Result<std::vector<cdi::Mount>> put_pod_files(const std::string& folder, const Json& pod,
                                              const std::string& address, const PodApi& api) {
  TRY_VOID(make_directories(folder, 0755));
  const std::string_view name = text_or_empty(pod, "metadata/name");
  std::vector<cdi::Mount> mounts;
  const bool own_network = !bool_or(pod, "spec/hostNetwork", false);
  if (own_network) {
    TRY_VOID(put(folder + "/hosts", hosts_text(address, name)));
    TRY_VOID(put(folder + "/hostname", fmt::format("{}\n", name)));
    TRY_VOID(put(folder + "/resolv.conf", resolver_text(pod)));
    for (const char* file : {"hosts", "hostname", "resolv.conf"})
      mounts.push_back({fmt::format("{}/{}", folder, file), fmt::format("/etc/{}", file), {"rw"}});
  }
  if (!api.host.empty() && bool_or(pod, "spec/automountServiceAccountToken", true)) {
    TRY(cdi::Mount account, put_account(folder, pod, api));
    mounts.push_back(std::move(account));
  }
  return mounts;
}

Result<std::vector<cdi::Mount>> put_volumes(const std::string& folder, const Json& pod,
                                            const Json& container) {
  std::vector<cdi::Mount> mounts;
  for (const Json& wanted : array_or_empty(container, "volumeMounts")) {
    const std::string name(text_or_empty(wanted, "name"));
    std::string source;
    for (const Json& volume : array_or_empty(pod, "spec/volumes")) {
      if (text_or_empty(volume, "name") != name) continue;
      source = text_or_empty(volume, "hostPath/path");
      if (find(volume, "emptyDir")) source = fmt::format("{}/{}", folder, name);
    }
    if (source.empty())
      return refuse(fmt::format("volume {}: the sandbox has emptyDir and hostPath only", name));
    if (source.starts_with(folder)) {
      TRY_VOID(make_directories(source, 0777));
    }
    const bool fixed = bool_or(wanted, "readOnly", false);
    mounts.push_back(
        {source, std::string(text_or_empty(wanted, "mountPath")), {fixed ? "ro" : "rw"}});
  }
  return mounts;
}

std::vector<std::string> api_environment(const PodApi& api) {
  if (api.host.empty()) return {};
  return {fmt::format("KUBERNETES_SERVICE_HOST={}", api.host),
          fmt::format("KUBERNETES_SERVICE_PORT={}", api.port),
          fmt::format("KUBERNETES_SERVICE_PORT_HTTPS={}", api.port)};
}

}  // namespace nvdra::sandbox
