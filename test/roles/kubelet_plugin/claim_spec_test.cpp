// The claims' CDI files, against the golden files that other releases share.
#include "catch.hpp"
#include "cdi/render.hpp"
#include "fake/driver_root.hpp"
#include "roles/kubelet_plugin/claims.hpp"
#include "roles/kubelet_plugin/devices.hpp"

#include <fstream>
#include <iterator>

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

const ClaimUid claim{"1b4e28ba-2fa1-11d2-883f-0016d3cca427"};

std::string golden(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/cdi/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Files : fake::TempRoot {
  Files() {
    file("/devices",
         "Character devices:\n235 nvidia-caps-imex-channels\n236 nvidia-caps\n\nBlock devices:\n");
    file("/capability", "DeviceFileMinor: 3\nDeviceFileMode: 256\nDeviceFileModify: 0\n");
  }
  Roots roots(std::string container) const {
    return {std::move(container), "/", path("/devices"), path("/capability")};
  }
};

ClaimSetting setting() {
  ClaimSetting all;
  all.clique = CliqueId("00000000-0000-0000-0000-0000000000aa.32766");
  all.domains[DomainUid(domain_uid)] = {"default", "my-compute-domain"};
  all.domains_directory = "/var/lib/kubelet/plugins/compute-domain.nvidia.com/domains";
  return all;
}

std::vector<ConfigGroup> groups(const Json& status) {
  return std::get<std::vector<ConfigGroup>>(read_allocation(status, Decoding::strict));
}

}  // namespace

TEST_CASE("a claim's CDI file is byte for byte what a mixed cluster expects", "[plugin][spec]") {
  Files files;
  Json daemon = status(JsonArray{result("daemon-0", "daemon")},
                       JsonArray{config(parameters(daemon_config_kind, domain_uid), "FromClaim",
                                        JsonArray{"daemon"})});
  struct Row {
    const char* file;
    Json status;
    const char* container_root;
  };
  for (const Row& row :
       {Row{"daemon.yaml", daemon, "/"}, Row{"channel-roots-equal.yaml", channel_status(), "/"},
        Row{"channel-roots-differ.yaml", channel_status(), "/driver-root"}}) {
    INFO(row.file);
    const Roots roots = files.roots(row.container_root);
    AllChannels every(roots);
    auto spec = claim_spec(claim, groups(row.status), roots, setting(), every);
    REQUIRE(spec);
    CHECK(cdi::render(*spec) == golden(row.file));
  }
}

TEST_CASE("mode All counts only where it is allowed", "[plugin][spec]") {
  Files files;
  const Roots roots = files.roots("/");
  AllChannels every(roots);
  ClaimSetting all = setting();
  Json wanted = channel_status(domain_uid, "All");
  auto one = claim_spec(claim, groups(wanted), roots, all, every);
  REQUIRE(one);
  CHECK(one->devices.at(0).edits.device_nodes.size() == 1);
  CHECK(every.made() == 0);
  all.all_allowed = true;
  auto whole = claim_spec(claim, groups(wanted), roots, all, every);
  REQUIRE(whole);
  CHECK(whole->devices.at(0).edits.device_nodes.empty());
  CHECK(whole->devices.at(0).edits.shared_nodes->nodes().size() == 2048);
}

TEST_CASE("the list of all channels is made once for a major number", "[plugin][spec]") {
  Files files;
  const Roots roots = files.roots("/driver-root");
  AllChannels every(roots);
  ClaimSetting all = setting();
  all.all_allowed = true;
  const auto wanted = groups(channel_status(domain_uid, "All"));
  auto first = claim_spec(claim, wanted, roots, all, every);
  auto second = claim_spec(ClaimUid("b"), wanted, roots, all, every);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(every.made() == 1);
  const auto& shared = first->devices.at(0).edits.shared_nodes;
  CHECK(shared == second->devices.at(0).edits.shared_nodes);
  for (const cdi::DeviceNode& node : shared->nodes()) {
    REQUIRE(node.major == 235);
    REQUIRE(node.host_path == node.path);
  }

  files.file("/devices", "Character devices:\n511 nvidia-caps-imex-channels\n\nBlock devices:\n");
  auto later = claim_spec(claim, wanted, roots, all, every);
  REQUIRE(later);
  CHECK(every.made() == 2);
  CHECK(later->devices.at(0).edits.shared_nodes->nodes().at(0).major == 511);
  CHECK(cdi::render(*later) != cdi::render(*first));
  CHECK(claim_spec(claim, wanted, roots, all, every));
  CHECK(every.made() == 2);
}
