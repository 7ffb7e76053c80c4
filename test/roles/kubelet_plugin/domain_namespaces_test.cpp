// Domains whose daemons run in an additional namespace of the driver.
#include "roles/kubelet_plugin/managed_node.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

const std::string second_space = "nvdra-more";

struct TwoSpaces : ManagedNode {
  TwoSpaces() : ManagedNode(smi_with_fabric, true, {driver_space, second_space}) {
    claim("a");
    pod("10.0.0.1", "Running", "daemon-a", second_space);
  }
  void daemon_there(bool ready) { daemon(ready, "10.0.0.1", domain_uid, second_space); }
  void daemon_left_behind(bool ready) { daemon(ready); }
  void stale_status() {
    domain(domain_uid, "d",
           {{"nodes", JsonArray{{{"name", "node-a"},
                                 {"ipAddress", "10.0.0.1"},
                                 {"cliqueID", node_clique},
                                 {"status", "Ready"}}}}});
  }
};

std::string error_of(const Result<dra::Prepared>& prepared) {
  REQUIRE_FALSE(prepared);
  return prepared.error().text();
}

k8s::ObjectPtr clique(const std::string& space, const std::string& version,
                      const std::string& node) {
  return std::make_shared<const k8s::Object>(
      Json{{"metadata", {{"namespace", space}, {"name", "c"}, {"resourceVersion", version}}},
           {"daemons", JsonArray{{{"nodeName", node}}}}});
}

}  // namespace

TEST_CASE("a claim is answered when its daemon in an additional namespace becomes Ready",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  TwoSpaces node;
  auto wait = [&]() -> Async<Result<void>> {
    while (node.api.watching() < 3) co_await node.time.sleep(5ms);  // node, two namespaces
    node.daemon_there(true);
    co_return ok();
  };
  auto both = [&]() -> Async<Result<dra::Prepared>> {
    using namespace asio::experimental::awaitable_operators;
    auto [prepared, done] = co_await (node.preparing("a", "default", 10s) && wait());
    co_return prepared;
  };
  CHECK(node.run(both()));
  CHECK(node.api.watching() == 0);
}

TEST_CASE("a fresh NotReady in an additional namespace beats a stale Ready in the status",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  TwoSpaces node;
  node.stale_status();
  node.daemon_there(false);
  CHECK_THAT(error_of(node.prepare("a")),
             Catch::Contains("daemon pod nvdra-more/daemon-a is NotReady in ComputeDomainClique "
                             "nvdra-more/"));
  node.daemon_there(true);
  CHECK(node.prepare("a"));
}

TEST_CASE("a clique that former daemons left in another namespace does not count",
          "[plugin][managed]") {
  if (fake::must_skip_root_tests()) return;
  TwoSpaces node;
  SECTION("its Ready does not open the gate") {
    node.daemon_left_behind(true);
    node.daemon_there(false);
    CHECK_THAT(error_of(node.prepare("a")),
               Catch::Contains("NotReady in ComputeDomainClique nvdra-more/"));
  }
  SECTION("its NotReady does not keep it shut") {
    node.daemon_left_behind(false);
    node.daemon_there(true);
    CHECK(node.prepare("a"));
  }
}

TEST_CASE("of several cliques the one that names the node counts, then the newest",
          "[plugin][managed]") {
  const NodeName node("node-a");
  auto chosen = [&](std::vector<k8s::ObjectPtr> cliques) {
    k8s::ObjectPtr found = clique_for(cliques, node);
    return found ? std::string(found->space()) : "";
  };
  CHECK(chosen({}).empty());
  CHECK(chosen({clique("x", "9", "node-b"), clique("y", "5", "node-a")}) == "y");
  CHECK(chosen({clique("x", "5", "node-a"), clique("y", "9", "node-b")}) == "x");
  CHECK(chosen({clique("x", "9", "node-a"), clique("y", "10", "node-a")}) == "y");
  CHECK(chosen({clique("x", "10", "node-a"), clique("y", "9", "node-a")}) == "x");
  CHECK(chosen({clique("x", "9", "node-b"), clique("y", "10", "node-b")}) == "y");
}
