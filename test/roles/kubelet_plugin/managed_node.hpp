// A node in driverManaged: real files, a played driver root, a LiveApi; the plugin's parts wired as
// its role does.
#pragma once

#include "base/files.hpp"
#include "catch.hpp"
#include "cdi/names.hpp"
#include "fake/driver_root.hpp"
#include "fake/run_loop.hpp"
#include "roles/kubelet_plugin/claims.hpp"
#include "roles/kubelet_plugin/clean_up.hpp"
#include "roles/kubelet_plugin/domain_gate.hpp"
#include "roles/kubelet_plugin/driver.hpp"
#include "roles/kubelet_plugin/live_api.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace nvdra::roles::kubelet_plugin::test {

constexpr const char* smi_with_fabric =
    "out 0, NVIDIA GB200, GPU-1, 580.95.05, Completed, Success, 7, "
    "11111111-2222-3333-4444-555555555555\n";
constexpr const char* smi_without_fabric =
    "out 0, NVIDIA A100, GPU-1, 580.95.05, N/A, N/A, N/A, N/A\n";
inline const std::string node_clique = "11111111-2222-3333-4444-555555555555.7";
inline const std::string driver_space = "nvdra";
inline const std::string other_domain = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
inline const std::string node_path = "/api/v1/nodes/node-a";

inline Json domain_object(const std::string& uid, const std::string& name) {
  return {{"metadata", {{"namespace", "default"}, {"name", name}, {"uid", uid}}}};
}
inline std::string domain_path(const std::string& name) {
  return "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains/" + name;
}
inline std::string clique_path(const std::string& domain = domain_uid,
                               const std::string& space = driver_space) {
  return "/apis/resource.nvidia.com/v1beta1/namespaces/" + space + "/computedomaincliques/" +
         domain + "." + node_clique;
}
inline std::string pod_path(const std::string& name = "daemon-a",
                            const std::string& space = driver_space) {
  return "/api/v1/namespaces/" + space + "/pods/" + name;
}

inline Json daemon_status(const std::string& domain = domain_uid) {
  return status(
      JsonArray{result("daemon-0", "daemon")},
      JsonArray{config(parameters(daemon_config_kind, domain), "FromClaim", JsonArray{"daemon"})});
}

struct ManagedNode {
  explicit ManagedNode(const char* smi = smi_with_fabric, bool cliques = true,
                       std::vector<std::string> driver_spaces = {driver_space})
      : spaces(std::move(driver_spaces)),
        cdi(*cdi::SpecDir::open(files.path() + "/cdi")),
        client(api, time),
        news(loop.get_executor()),
        metrics(time, "node-a"),
        checkpoint(directory.get(), files.path(), time),
        domains(loop.get_executor(), client, time, NodeName("node-a")),
        facts({root.path(), "/run/nvidia/driver"}, gates, time, news),
        label(loop.get_executor(), client, time, NodeName("node-a"), news),
        directories(directory.get(), files.path()),
        base(cdi, roots()),
        gate({client, time, domains, facts, news}, {.node = NodeName("node-a"),
                                                    .namespaces = spaces,
                                                    .cliques = cliques,
                                                    .explain_after = 50ms,
                                                    .explain_every = 50ms}),
        events(loop.get_executor(), client, time, "plugin", "node-a"),
        driver(parts(), config()),
        clean_up(parts(), driver, [] { return 0.0; }, {5ms, 5ms, 20ms}) {
    root.tool("/usr/bin/nvidia-smi", smi);
    root.file("/usr/bin/nvidia-imex", "#!/bin/sh\n", 0755);
    root.file("/usr/bin/nvidia-imex-ctl", "#!/bin/sh\n", 0755);
    root.file("/usr/lib64/libcuda.so.580.95.05");
    root.link("/usr/lib64/libcuda.so.1", "libcuda.so.580.95.05");
    root.file("/devices",
              "Character devices:\n235 nvidia-caps-imex-channels\n236 nvidia-caps\n\nBlock "
              "devices:\n");
    root.file("/capability", "DeviceFileMinor: 3\nDeviceFileMode: 256\nDeviceFileModify: 0\n");
    api.set(node_path, {{"metadata", {{"name", "node-a"}, {"labels", JsonObject{}}}}});
    domain(domain_uid, "d");
    domain(other_domain, "other");
    api.calls.clear();
    facts.check_driver(true);
    Result<void> known = run(ask_facts());
    (void)known;  // facts.trouble() says it
  }

  Roots roots() const {
    return {root.path(), "/run/nvidia/driver", root.path("/devices"), root.path("/capability")};
  }
  DriverConfig config() const {
    DriverConfig config;
    config.mode = ImexMode::driver_managed;
    config.roots = roots();
    config.node = NodeName("node-a");
    config.namespaces = spaces;
    config.tell_after = 30ms;
    config.ask_pods = 10s;
    config.look_again = 20ms;
    config.answer_margin = 10ms;
    return config;
  }
  DriverParts parts() {
    DriverParts parts{loop.get_executor(),
                      time,
                      client,
                      checkpoint,
                      cdi,
                      domains,
                      facts,
                      gate,
                      metrics,
                      news,
                      &events};
    parts.label = &label;
    parts.directories = &directories;
    parts.base = &base;
    return parts;
  }

  // What the API server has and the plugin's cache knows.
  void domain(const std::string& uid, const std::string& name, Json status = nullptr,
              bool deleting = false) {
    Json object = domain_object(uid, name);
    if (!status.is_null()) object.as_object()["status"] = status;
    if (deleting) object.at("metadata").as_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    api.set(domain_path(name), object);
    known_[name] = k8s::Object(api.at(domain_path(name)));
    std::vector<k8s::Object> all;
    for (const auto& [each, known] : known_) all.push_back(known);
    domains.store().replace(all, std::to_string(++domains_version_));
    news.notify();
  }
  void forget_domain(const std::string& name) {
    known_.erase(name);
    std::vector<k8s::Object> all;
    for (const auto& [each, known] : known_) all.push_back(known);
    domains.store().replace(all, std::to_string(++domains_version_));
    news.notify();
  }
  void claim(const std::string& uid, Json status = channel_status(),
             const std::string& space = "default") {
    api.set(
        "/apis/resource.k8s.io/v1/namespaces/" + space + "/resourceclaims/" + uid,
        {{"metadata", {{"namespace", space}, {"name", uid}, {"uid", uid}}}, {"status", status}});
    // The workload's pod, which waits for it.
    api.set("/api/v1/namespaces/default/pods/p",
            {{"metadata", {{"namespace", "default"}, {"name", "p"}, {"uid", "u"}}}});
  }
  // This node's entry in the clique, and the pod that it is about.
  void daemon(bool ready, const std::string& ip = "10.0.0.1",
              const std::string& domain = domain_uid, const std::string& space = driver_space) {
    api.set(clique_path(domain, space),
            {{"metadata", {{"namespace", space}, {"name", domain + "." + node_clique}}},
             {"daemons", JsonArray{{{"nodeName", "node-a"},
                                    {"ipAddress", ip},
                                    {"cliqueID", node_clique},
                                    {"index", 0},
                                    {"status", ready ? "Ready" : "NotReady"}}}}});
  }
  void pod(const std::string& ip = "10.0.0.1", const std::string& phase = "Running",
           const std::string& name = "daemon-a", const std::string& space = driver_space) {
    api.set(pod_path(name, space), {{"metadata", {{"namespace", space}, {"name", name}}},
                                    {"status", {{"podIP", ip}, {"phase", phase}}}});
  }
  std::string node_label() const {
    k8s::Object node(api.at(node_path));
    const Json* found = node.label(domain_label);
    return found ? std::string(found->get_string()) : "";
  }

  Async<Result<void>> ask_facts() {
    co_await facts.refresh();
    co_return ok();
  }
  // With the watch on the node running beside it.
  template <class T>
  Result<T> run(Async<Result<T>> work) {
    return fake::run(loop, beside_watch(std::move(work)));
  }
  template <class T>
  Async<Result<T>> beside_watch(Async<Result<T>> work) {
    using namespace asio::experimental::awaitable_operators;
    auto first = co_await (label.run() || std::move(work));
    co_return std::get<1>(std::move(first));
  }
  Async<Result<dra::Prepared>> preparing(std::string uid, std::string space, Duration limit) {
    Result<dra::Prepared> prepared =
        co_await driver.prepare({space, uid, ClaimUid(uid)}, time.now() + limit);
    co_return prepared;
  }
  Result<dra::Prepared> prepare(std::string uid, std::string space = "default",
                                Duration limit = 400ms) {
    return run(preparing(uid, space, limit));
  }
  // While `uid` is held, `then` happens; the answer of the claim.
  Result<dra::Prepared> prepare_and(std::string uid, std::function<void()> then) {
    return run(both(uid, std::move(then)));
  }
  Async<Result<dra::Prepared>> both(std::string uid, std::function<void()> then) {
    using namespace asio::experimental::awaitable_operators;
    auto [prepared, done] = co_await (preparing(uid, "default", 10s) && later(std::move(then)));
    if (!done) co_return std::move(done).failure();
    co_return prepared;
  }
  // Once the claim's gate watches.
  Async<Result<void>> later(std::function<void()> then) {
    while (api.watching() < 2) co_await time.sleep(5ms);
    then();
    co_return ok();
  }
  Result<void> unprepare(std::string uid, std::string space = "default") {
    return run(driver.unprepare({space, uid, ClaimUid(uid)}, time.now() + 2s));
  }
  Async<Result<void>> passing() {
    co_await clean_up.pass();
    co_return ok();
  }
  void pass() { REQUIRE(run(passing())); }
  Async<Result<void>> keeping() {
    co_await driver.keep_node();
    co_return ok();
  }
  void keep_node() { REQUIRE(run(keeping())); }
  // The clean-up runs until `done`.
  Async<Result<void>> looking_after_domains(std::function<bool()> done, CleanUp* by = nullptr) {
    using namespace asio::experimental::awaitable_operators;
    auto first =
        co_await ((by ? by : &clean_up)->run() || within(time, 10s, until(std::move(done))));
    co_return std::get<1>(std::move(first));
  }
  // With the watch on the ComputeDomains running beside it.
  Async<Result<void>> beside_domains(Async<Result<void>> work) {
    using namespace asio::experimental::awaitable_operators;
    auto first = co_await (domains.run() || std::move(work));
    co_return std::get<1>(std::move(first));
  }
  Async<Result<void>> until(std::function<bool()> done) {
    while (!done()) co_await time.sleep(5ms);
    co_return ok();
  }
  const dra::CheckpointClaim* entry(const std::string& uid) const {
    return checkpoint.current().find(ClaimUid(uid));
  }
  bool has_directory(const std::string& uid) const {
    return std::filesystem::exists(files.path() + "/domains/" + uid);
  }

  const std::vector<std::string> spaces;
  fake::TempDir files;
  fake::FakeNode root;
  Fd directory = *open_directory(files.path());
  asio::io_context loop{1};
  RealTime time;
  FeatureGates gates;
  cdi::SpecDir cdi;
  LiveApi api{loop.get_executor(), time};
  k8s::Client client;
  Event news;
  kubelet_plugin::Metrics metrics;
  dra::CheckpointStore checkpoint;
  Domains domains;
  NodeFacts facts;
  NodeLabel label;
  DomainDirectories directories;
  BaseSpec base;
  DomainGate gate;
  k8s::EventRecorder events;
  Driver driver;
  CleanUp clean_up;

private:
  std::map<std::string, k8s::Object> known_;
  long domains_version_ = 0;
};

}  // namespace nvdra::roles::kubelet_plugin::test
