// Claims in driverManaged: label, gate, files, and their ends.
#include "roles/kubelet_plugin/managed_node.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

std::string error_of(const Result<dra::Prepared>& prepared) {
  REQUIRE_FALSE(prepared);
  return prepared.error().text();
}

}  // namespace

TEST_CASE("a channel claim labels its node and is answered when the daemon here becomes Ready",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  auto prepared = node.prepare_and("a", [&] {
    CHECK(node.node_label() == domain_uid);
    CHECK(node.entry("a")->state == dra::ClaimState::started);
    node.daemon(true);
  });
  REQUIRE(prepared);
  CHECK(prepared->at(0).cdi_ids ==
        std::vector<std::string>{"k8s.compute-domain.nvidia.com/claim=a-channel-0"});
  CHECK(node.entry("a")->state == dra::ClaimState::completed);
  auto spec = node.cdi.get(cdi::claim_file(ClaimUid("a")));
  REQUIRE(spec);
  CHECK(spec->devices.at(0).edits.device_nodes.size() == 1);
  // The claim, the node's list, the label, one watch, one look at the pods.
  CHECK(node.api.count("GET /apis/resource.nvidia.com") == 0);
  CHECK(node.api.count("WATCH /apis/resource.nvidia.com/v1beta1/namespaces/nvdra/") == 1);
  CHECK(node.api.count("PATCH /api/v1/nodes/node-a") == 1);
  CHECK(node.api.count("GET /api/v1/namespaces/nvdra/pods") == 1);
  CHECK(node.api.watching() == 0);
}

TEST_CASE("a node whose daemon is Ready answers the next claim without any watch",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.api.set(node_path,
               {{"metadata", {{"name", "node-a"}, {"labels", {{domain_label, domain_uid}}}}}});
  node.claim("a");
  node.pod();
  node.daemon(true);
  CHECK(node.prepare("a"));
  CHECK(node.api.count("WATCH /apis/resource.nvidia.com") == 0);
  CHECK(node.api.count("PATCH") == 0);
}

TEST_CASE("a fresh NotReady in the clique beats a stale Ready in the status", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.domain(domain_uid, "d",
              {{"nodes", JsonArray{{{"name", "node-a"},
                                    {"ipAddress", "10.0.0.1"},
                                    {"cliqueID", node_clique},
                                    {"status", "Ready"}}}}});
  node.claim("a");
  node.pod();
  node.daemon(false);
  std::string text = error_of(node.prepare("a"));
  CHECK_THAT(text, Catch::Contains("error preparing devices for claim 'default/a:a': ") &&
                       Catch::Contains("ComputeDomain default/d") &&
                       Catch::Contains("node node-a") && Catch::Contains(node_clique) &&
                       Catch::Contains("daemon pod nvdra/daemon-a is NotReady"));
  node.daemon(true);
  CHECK(node.prepare("a"));
}

TEST_CASE("a Ready entry of a former daemon pod does not let the workload start",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.daemon(true, "10.0.0.1");
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("no daemon pod on this node"));
  node.pod("10.0.0.2");
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("former daemon pod"));
  node.daemon(true, "10.0.0.2");
  CHECK(node.prepare("a"));
}

TEST_CASE("a daemon that turns Ready before the kubelet tells its pod's address is believed",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod("");
  SECTION("the watch has shown it NotReady before") {
    node.daemon(false);
    auto turn_ready = [&]() -> Async<Result<void>> {
      while (node.api.watching() < 2) co_await node.time.sleep(5ms);
      co_await node.time.sleep(20ms);  // what there is has been shown by then
      node.daemon(true);
      co_return ok();
    };
    auto both = [&]() -> Async<Result<dra::Prepared>> {
      using namespace asio::experimental::awaitable_operators;
      auto [prepared, done] = co_await (node.preparing("a", "default", 5s) && turn_ready());
      co_return prepared;
    };
    CHECK(node.run(both()));
  }
  SECTION("an entry that was Ready all the time may be a former pod's") {
    node.daemon(true);
    CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("former daemon pod"));
  }
}

TEST_CASE("what the daemon pod waits for is in the claim's error", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  Json pod{{"metadata", {{"namespace", driver_space}, {"name", "daemon-a"}}},
           {"status",
            {{"phase", "Pending"},
             {"containerStatuses",
              JsonArray{{{"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}}}}}};
  node.api.set(pod_path(), pod);
  CHECK_THAT(error_of(node.prepare("a")),
             Catch::Contains("daemon pod nvdra/daemon-a is Pending (ImagePullBackOff)"));
}

TEST_CASE("without the right to watch cliques they are asked for", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  node.daemon(false);
  node.api.no_watches = true;
  auto prepare = [&]() -> Async<Result<dra::Prepared>> {
    using namespace asio::experimental::awaitable_operators;
    auto ready = [&]() -> Async<Result<void>> {
      co_await node.time.sleep(200ms);
      node.daemon(true);
      co_return ok();
    };
    auto [prepared, done] = co_await (node.preparing("a", "default", 10s) && ready());
    co_return prepared;
  };
  CHECK(fake::run(node.loop, prepare()));
}

TEST_CASE("with the gate ComputeDomainCliques off the ComputeDomain's status opens the gate",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node(smi_with_fabric, false);
  node.claim("a");
  node.pod();
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("the status of ComputeDomain default/d"));
  node.domain(domain_uid, "d",
              {{"nodes", JsonArray{{{"name", "node-a"},
                                    {"ipAddress", "10.0.0.1"},
                                    {"cliqueID", node_clique},
                                    {"status", "Ready"}}}}});
  CHECK(node.prepare("a"));
  CHECK(node.api.count("WATCH /apis/resource.nvidia.com") == 0);
}

TEST_CASE("a node without fabric waits for its daemon pod and gets no device",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node(smi_without_fabric);
  node.claim("a");
  node.pod();
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("without fabric clique"));
  CHECK(node.node_label() == domain_uid);
  node.domain(domain_uid, "d",
              {{"nodes", JsonArray{{{"name", "node-a"},
                                    {"ipAddress", "10.0.0.1"},
                                    {"cliqueID", ""},
                                    {"index", -1},
                                    {"status", "Ready"}}}}});
  auto prepared = node.prepare("a");
  REQUIRE(prepared);
  CHECK(prepared->at(0).cdi_ids.empty());
  CHECK_FALSE(node.cdi.get(cdi::claim_file(ClaimUid("a"))));
}

TEST_CASE("a node that works for another domain is not taken from it, and the error names it",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.claim("b", channel_status(other_domain));
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare_and("a", [] {}));
  REQUIRE(node.unprepare("a"));
  node.api.set(node_path,
               {{"metadata", {{"name", "node-a"}, {"labels", {{domain_label, domain_uid}}}}}});
  std::string text = error_of(node.prepare("b"));
  CHECK_THAT(text, Catch::Contains("node node-a works for ComputeDomain default/d"));
  CHECK(node.node_label() == domain_uid);
}

TEST_CASE("the node label goes with the last claim of its domain, and only that one",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.claim("b");
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));
  // Another claim of the same domain has begun; it waits for the channel.
  REQUIRE(node.run(node.checkpoint.update([](dra::Checkpoint& checkpoint) {
    dra::CheckpointClaim started;
    started.status = channel_status();
    checkpoint.put(ClaimUid("b"), started);
    return ok();
  })));
  REQUIRE(node.unprepare("a"));
  CHECK(node.node_label() == domain_uid);
  REQUIRE(node.unprepare("b"));
  CHECK(node.node_label().empty());
  REQUIRE(node.unprepare("b"));
}

TEST_CASE("unpreparing a claim that never became ready takes the node label back",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  error_of(node.prepare("a"));
  REQUIRE(node.node_label() == domain_uid);
  REQUIRE(node.unprepare("a"));
  CHECK(node.node_label().empty());
}

TEST_CASE("the label of a new domain survives the end of the old domain's claim",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  error_of(node.prepare("a"));
  node.api.set(node_path,
               {{"metadata", {{"name", "node-a"}, {"labels", {{domain_label, other_domain}}}}}});
  REQUIRE(node.unprepare("a"));
  CHECK(node.node_label() == other_domain);
}

TEST_CASE("unpreparing waits for an API server that is away for a moment", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));
  node.api.refuse_patches = 1;
  CHECK(node.unprepare("a"));
  CHECK_FALSE(node.entry("a"));
  CHECK(node.node_label().empty());
}

TEST_CASE("a label that cannot be removed keeps the claim, and the next try ends both",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));
  node.api.refuse_patches = 1000;
  const Result<void> undone = node.unprepare("a");
  REQUIRE_FALSE(undone);
  CHECK_THAT(undone.error().text(), Catch::Contains("remove the node label"));
  CHECK(node.entry("a"));
  node.api.refuse_patches = 0;
  CHECK(node.unprepare("a"));
  CHECK_FALSE(node.entry("a"));
  CHECK(node.node_label().empty());
}

TEST_CASE("a label that somebody takes away while the claim waits is put again",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.pod();
  auto take_away = [&]() -> Async<Result<void>> {
    while (node.api.watching() < 2) co_await node.time.sleep(5ms);
    node.api.set(node_path, {{"metadata", {{"name", "node-a"}, {"labels", JsonObject{}}}}});
    while (node.node_label() != domain_uid) co_await node.time.sleep(5ms);
    node.daemon(true);
    co_return ok();
  };
  auto both = [&]() -> Async<Result<dra::Prepared>> {
    using namespace asio::experimental::awaitable_operators;
    auto [prepared, done] = co_await (node.preparing("a", "default", 10s) && take_away());
    co_return prepared;
  };
  CHECK(node.run(both()));
}

TEST_CASE("a domain that is being deleted gets no node any more", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.claim("b");
  error_of(node.prepare("a"));
  node.domain(domain_uid, "d", nullptr, true);
  CHECK_THAT(error_of(node.prepare("b")), Catch::Contains("default/d is being deleted"));
  // The controller has taken the label away, and the domain is gone: a claim that is still held
  // does not put it back.
  node.api.set(node_path, {{"metadata", {{"name", "node-a"}, {"labels", JsonObject{}}}}});
  node.forget_domain("d");
  node.api.remove(domain_path("d"));
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("was not found"));
  CHECK(node.node_label().empty());
}

TEST_CASE("a ComputeDomain that is younger than the cache is found at the server",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.forget_domain("d");
  node.claim("a");
  node.pod();
  node.daemon(true);
  CHECK(node.prepare("a"));
}

TEST_CASE("allocation mode All gives every channel, in byte order", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a", channel_status(domain_uid, "All"));
  node.pod();
  node.daemon(true);
  REQUIRE(node.prepare("a"));
  auto spec = node.cdi.get(cdi::claim_file(ClaimUid("a")));
  REQUIRE(spec);
  const auto& nodes = spec->devices.at(0).edits.device_nodes;
  REQUIRE(nodes.size() == 2048);
  CHECK(nodes[2].path == "/dev/nvidia-caps-imex-channels/channel10");
  CHECK(nodes.back().path == "/dev/nvidia-caps-imex-channels/channel999");
  REQUIRE(node.prepare("a"));  // its file is looked at again
  CHECK(node.driver.all_channels().made() == 1);
}

TEST_CASE("a driver that is too old for host names holds claims and says so", "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node(
      "out 0, NVIDIA GB200, GPU-1, 560.35.03, Completed, Success, 7, "
      "11111111-2222-3333-4444-555555555555\n");
  node.claim("a");
  CHECK_THAT(error_of(node.prepare("a")),
             Catch::Contains("560.35.03") && Catch::Contains("570.158.01") &&
                 Catch::Contains("featureGates.IMEXDaemonsWithDNSNames=false"));
  CHECK(node.node_label().empty());
}
