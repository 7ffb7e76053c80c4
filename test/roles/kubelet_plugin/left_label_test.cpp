// A node whose mode was switched from driverManaged to hostManaged: what is left of the former.
#include "roles/kubelet_plugin/left_label.hpp"

#include "roles/kubelet_plugin/managed_node.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

// driverManaged has prepared claims; then the plugin comes back in hostManaged.
struct SwitchedNode : ManagedNode {
  SwitchedNode() {
    claim("a");
    claim("b");
    pod();
    daemon(true);
    REQUIRE(prepare("a"));
    REQUIRE(node_label() == domain_uid);
    api.calls.clear();
  }
  DriverParts host_parts() {
    DriverParts host = parts();
    host.label = nullptr;
    host.directories = nullptr;
    host.base = nullptr;
    host.left_label = &left;
    return host;
  }
  DriverConfig host_config() const {
    DriverConfig host = config();
    host.mode = ImexMode::host_managed;
    return host;
  }
  // Without the watch on the node, for which there is no right in this mode.
  void look() { REQUIRE(fake::run(loop, left.look())); }
  Result<void> end(const std::string& uid) {
    return fake::run(loop, host_driver.unprepare({"default", uid, ClaimUid(uid)}, time.now() + 2s));
  }

  std::vector<std::string> told;
  NodeLabel unwatched{loop.get_executor(), client, time, NodeName("node-a"), news};
  LeftLabel left{
      unwatched, domains, time, NodeName("node-a"),
      [this](std::string reason, std::string message) { told.push_back(reason + ": " + message); }};
  Driver host_driver{host_parts(), host_config()};
};

}  // namespace

TEST_CASE("in hostManaged a label of driverManaged is told at start, with its remedy",
          "[plugin][hostmanaged]") {
  if (fake::must_skip_root_tests()) return;
  SwitchedNode node;
  node.look();
  REQUIRE(node.told.size() == 1);
  CHECK_THAT(node.told[0],
             Catch::StartsWith("NodeLabelLeft: node node-a ") &&
                 Catch::Contains("resource.nvidia.com/computeDomain=" + domain_uid) &&
                 Catch::Contains("ComputeDomain default/d") &&
                 Catch::Contains("resources.computeDomains.imex.cleanUpOtherMode=true"));
}

TEST_CASE("a node without a left label is told nothing and asked once", "[plugin][hostmanaged]") {
  if (fake::must_skip_root_tests()) return;
  SwitchedNode node;
  node.api.set(node_path, {{"metadata", {{"name", "node-a"}, {"labels", JsonObject{}}}}});
  node.api.away = 1;  // and again while there is no answer
  node.look();
  CHECK(node.told.empty());
  CHECK(node.api.count("GET " + node_path) == 2);
  REQUIRE(node.end("a"));
  CHECK_FALSE(node.entry("a"));
  CHECK(node.api.calls.size() == 2);
}

TEST_CASE("in hostManaged the label goes with the last claim of its domain, where that is allowed",
          "[plugin][hostmanaged]") {
  if (fake::must_skip_root_tests()) return;
  SwitchedNode node;
  const bool looked = GENERATE(true, false);
  if (looked) node.look();
  REQUIRE(node.run(node.checkpoint.update([](dra::Checkpoint& checkpoint) {
    dra::CheckpointClaim started;
    started.status = channel_status();
    checkpoint.put(ClaimUid("b"), started);
    return ok();
  })));
  REQUIRE(node.end("a"));
  CHECK(node.node_label() == domain_uid);
  REQUIRE(node.end("b"));
  CHECK(node.node_label().empty());
}

TEST_CASE("in hostManaged a label that cannot be removed does not keep the claim",
          "[plugin][hostmanaged]") {
  if (fake::must_skip_root_tests()) return;
  SwitchedNode node;
  node.look();
  SECTION("the right is missing") {
    node.api.no_patches = true;
  }
  SECTION("the server is away") {
    node.api.away = 1000;
  }
  CHECK(node.end("a"));
  CHECK_FALSE(node.entry("a"));
  CHECK(node.node_label() == domain_uid);
}

TEST_CASE("in hostManaged the label of another domain stays", "[plugin][hostmanaged]") {
  if (fake::must_skip_root_tests()) return;
  SwitchedNode node;
  node.api.set(node_path,
               {{"metadata", {{"name", "node-a"}, {"labels", {{domain_label, other_domain}}}}}});
  CHECK(node.end("a"));
  CHECK(node.node_label() == other_domain);
}
