// Claims of the driver's own daemons, and what they find on the node.
#include "roles/kubelet_plugin/managed_node.hpp"
#include "roles/kubelet_plugin/served_cliques.hpp"

#include <fstream>
#include <iterator>

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_of(const Result<dra::Prepared>& prepared) {
  REQUIRE_FALSE(prepared);
  return prepared.error().text();
}

}  // namespace

TEST_CASE("a daemon claim gets its directory, its environment and the driver's files",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  auto prepared = node.prepare("x", driver_space);
  REQUIRE(prepared);
  CHECK(prepared->at(0).cdi_ids ==
        std::vector<std::string>{"k8s.compute-domain.nvidia.com/device=all",
                                 "k8s.compute-domain.nvidia.com/claim=x-daemon-0"});
  auto spec = node.cdi.get(cdi::claim_file(ClaimUid("x")));
  REQUIRE(spec);
  const cdi::ContainerEdits& edits = spec->devices.at(0).edits;
  CHECK(edits.env ==
        std::vector<std::string>{"CLIQUE_ID=" + node_clique, "COMPUTE_DOMAIN_UUID=" + domain_uid,
                                 "COMPUTE_DOMAIN_NAME=d", "COMPUTE_DOMAIN_NAMESPACE=default"});
  REQUIRE(edits.device_nodes.size() == 1);
  CHECK(edits.device_nodes[0].path == "/dev/nvidia-caps/nvidia-cap3");
  CHECK(edits.device_nodes[0].major == 236);
  REQUIRE(edits.mounts.size() == 1);
  CHECK(edits.mounts[0].host_path == node.files.path() + "/domains/" + domain_uid);
  CHECK(edits.mounts[0].container_path == "/imexd");
  std::string text = content_of(node.files.path() + "/domains/" + domain_uid + "/imexd.cfg.tmpl");
  CHECK_THAT(text,
             Catch::Contains("\nIMEX_NODE_CONFIG_FILE={{ .IMEXDaemonNodesConfigPath }}\n") &&
                 Catch::Contains("\nIMEX_CMD_BIND_INTERFACE_IP={{ .IMEXCmdBindInterfaceIP }}\n") &&
                 Catch::Contains("\nDAEMONIZE=0\n"));
  auto base = node.cdi.get(cdi::base_file());
  REQUIRE(base);
  CHECK(base->devices.at(0).name == "all");
  CHECK(node.node_label().empty());
}

TEST_CASE("a daemon claim is answered while a channel claim of its node is held",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("a");
  node.claim("x", daemon_status(), driver_space);
  node.pod();
  auto life = [&]() -> Async<Result<void>> {
    while (node.api.watching() < 2) co_await node.time.sleep(5ms);
    Result<dra::Prepared> daemon = co_await node.preparing("x", driver_space, 5s);
    if (!daemon) co_return std::move(daemon).failure();
    node.daemon(true);
    co_return ok();
  };
  auto both = [&]() -> Async<Result<dra::Prepared>> {
    using namespace asio::experimental::awaitable_operators;
    auto [prepared, done] = co_await (node.preparing("a", "default", 10s) && life());
    if (!done) co_return std::move(done).failure();
    co_return prepared;
  };
  CHECK(node.run(both()));
}

TEST_CASE("a daemon claim of a user's namespace is refused without a trace", "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), "default");
  CHECK_THAT(error_of(node.prepare("x")),
             Catch::Contains("namespace \"default\"") && Catch::Contains("are not prepared"));
  CHECK_FALSE(node.entry("x"));
  CHECK_FALSE(node.has_directory(domain_uid));
}

TEST_CASE("a daemon claim whose domainID leads elsewhere is refused without a trace",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  for (const char* hostile : {"../../x", "..", ".", "a/b", "/etc", "a%2fb", ""}) {
    node.claim("x", daemon_status(hostile), driver_space);
    CHECK_FALSE(node.prepare("x", driver_space));
  }
  CHECK_FALSE(node.entry("x"));
  CHECK_FALSE(std::filesystem::exists(node.files.path() + "/domains"));
}

TEST_CASE("without nvidia-imex in the driver root a daemon claim waits, and its error names it",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  std::filesystem::remove(node.root.path("/usr/bin/nvidia-imex"));
  node.claim("x", daemon_status(), driver_space);
  CHECK_THAT(error_of(node.prepare("x", driver_space)),
             Catch::Contains("nvidia-imex not found in the driver root /run/nvidia/driver"));
  node.root.file("/usr/bin/nvidia-imex", "#!/bin/sh\n", 0755);
  CHECK(node.prepare("x", driver_space));
}

TEST_CASE("without the capability file a daemon claim leaves no CDI file", "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  std::filesystem::remove(node.root.path("/capability"));
  node.claim("x", daemon_status(), driver_space);
  CHECK_THAT(error_of(node.prepare("x", driver_space)), Catch::Contains("capability"));
  CHECK_FALSE(node.cdi.get(cdi::claim_file(ClaimUid("x"))));
}

TEST_CASE("on a node without fabric a daemon claim needs neither tools nor capability",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node(smi_without_fabric);
  std::filesystem::remove(node.root.path("/usr/bin/nvidia-imex"));
  std::filesystem::remove(node.root.path("/capability"));
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  auto spec = node.cdi.get(cdi::claim_file(ClaimUid("x")));
  REQUIRE(spec);
  CHECK(spec->devices.at(0).edits.env.at(0) == "CLIQUE_ID=");
  CHECK(spec->devices.at(0).edits.device_nodes.empty());
}

TEST_CASE("a prepared daemon claim gets lost files back", "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  auto first = node.prepare("x", driver_space);
  REQUIRE(first);
  REQUIRE(node.cdi.remove(cdi::claim_file(ClaimUid("x"))));
  REQUIRE(node.cdi.remove(cdi::base_file()));
  std::filesystem::remove_all(node.files.path() + "/domains");
  auto second = node.prepare("x", driver_space);
  REQUIRE(second);
  CHECK(*second == *first);
  CHECK(node.cdi.get(cdi::claim_file(ClaimUid("x"))));
  CHECK(node.cdi.get(cdi::base_file()));
  CHECK(node.has_directory(domain_uid));
}

TEST_CASE("a daemon claim can be unprepared when its ComputeDomain is gone, twice",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  node.forget_domain("d");
  node.api.remove(domain_path("d"));
  CHECK(node.unprepare("x", driver_space));
  CHECK(node.unprepare("x", driver_space));
  CHECK_FALSE(node.entry("x"));
}

TEST_CASE("a daemon that serves another clique than the node's is told of", "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  node.claim("x", daemon_status(), driver_space);
  REQUIRE(node.prepare("x", driver_space));
  const dra::Checkpoint& checkpoint = node.checkpoint.current();
  CHECK(daemons_of_former_cliques(checkpoint, node.cdi, CliqueId(node_clique)).empty());
  auto told = daemons_of_former_cliques(checkpoint, node.cdi, CliqueId("another.9"));
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("ComputeDomain default/d") && Catch::Contains(node_clique) &&
                          Catch::Contains("clique another.9") && Catch::Contains("nvdra/x"));
}

TEST_CASE("a clique that changes is counted, logged and told", "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  std::vector<std::string> told;
  node.facts.on_finding(
      [&](std::string reason, std::string message) { told.push_back(reason + ": " + message); });
  node.root.tool("/usr/bin/nvidia-smi",
                 "out 0, NVIDIA GB200, GPU-1, 580.95.05, Completed, Success, 9, "
                 "11111111-2222-3333-4444-555555555555\n"
                 "out 1, NVIDIA GB200, GPU-2, 580.95.05, N/A, N/A, N/A, N/A\n");
  REQUIRE(node.run(node.ask_facts()));
  CHECK(node.facts.clique_changes() == 1);
  CHECK_FALSE(node.facts.mixed().empty());
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[0], Catch::StartsWith("FabricMixed: ") && Catch::Contains("GPU-2"));
  CHECK_THAT(told[1], Catch::StartsWith("FabricCliqueChanged: ") && Catch::Contains(node_clique) &&
                          Catch::Contains("555555555555.9"));
}

TEST_CASE("a fabric that is lost is counted and told once, and again after its return",
          "[plugin][daemon]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  std::vector<std::string> told;
  node.facts.on_finding(
      [&](std::string reason, std::string message) { told.push_back(reason + ": " + message); });
  auto answer = [&](const char* smi) {
    node.root.tool("/usr/bin/nvidia-smi", smi);
    REQUIRE(node.run(node.ask_facts()));
  };
  answer(smi_without_fabric);
  CHECK(node.facts.clique_changes() == 1);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::StartsWith("FabricCliqueLost: ") && Catch::Contains(node_clique) &&
                          Catch::Contains("report no fabric now"));
  CHECK_THAT(node.facts.trouble(), Catch::Contains("report no fabric now"));
  CHECK(node.facts.clique()->value == node_clique);

  answer("exit 9\n");  // meanwhile the GPUs cannot be asked
  CHECK_THAT(node.facts.trouble(), !Catch::Contains("report no fabric now"));
  answer(smi_without_fabric);
  CHECK_THAT(node.facts.trouble(), Catch::Contains("report no fabric now"));
  CHECK(node.facts.clique_changes() == 1);
  CHECK(told.size() == 1);

  answer(smi_with_fabric);
  CHECK(node.facts.trouble().empty());
  CHECK(node.facts.clique_changes() == 1);
  answer(smi_without_fabric);
  CHECK(node.facts.clique_changes() == 2);
  CHECK(told.size() == 2);
}
