// What a node keeps of the cluster's ComputeDomains, and what of them is news to it.
#include "roles/kubelet_plugin/managed_node.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

Json entry(const std::string& name, const std::string& status = "Ready") {
  return {{"name", name},
          {"ipAddress", "10.0.0.1"},
          {"cliqueID", node_clique},
          {"index", 0},
          {"status", status}};
}

// As the API server shows it, with all that people and others have put there.
Json whole_domain(JsonArray nodes, const std::string& version = "7") {
  return {{"apiVersion", "resource.nvidia.com/v1beta1"},
          {"kind", "ComputeDomain"},
          {"metadata",
           {{"namespace", "default"},
            {"name", "d"},
            {"uid", domain_uid},
            {"resourceVersion", version},
            {"generation", 3},
            {"labels", {{"team", "x"}}},
            {"annotations", {{"note", "long"}}},
            {"finalizers", JsonArray{"f"}},
            {"managedFields", JsonArray{{{"manager", "kubectl"}}}}}},
          {"spec", {{"numNodes", 2}, {"channel", {{"resourceClaimTemplate", {{"name", "t"}}}}}}},
          {"status",
           {{"status", "Ready"},
            {"conditions", JsonArray{{{"type", "Ready"}}}},
            {"nodes", std::move(nodes)}}}};
}

}  // namespace

TEST_CASE("of a domain its name, its deletion and this node's entry are kept",
          "[plugin][domains]") {
  const NodeName node("node-a");
  Json kept = trim_domain(whole_domain({entry("node-b"), entry("node-a"), entry("node-c")}), node);
  CHECK(kept == Json{{"metadata",
                      {{"namespace", "default"},
                       {"name", "d"},
                       {"uid", domain_uid},
                       {"resourceVersion", "7"}}},
                     {"status", {{"nodes", JsonArray{entry("node-a")}}}}});
  Json leaving = whole_domain({entry("node-b")});
  leaving.at("metadata").as_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  kept = trim_domain(leaving, node);
  CHECK(k8s::Object(kept).deleting());
  CHECK(find(kept, "status") == nullptr);
  CHECK(trim_domain(JsonArray{}, node) == Json{{"metadata", JsonObject{}}});
}

TEST_CASE("what is kept of a domain opens its gate", "[plugin][domains]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node(smi_with_fabric, false);
  node.claim("a");
  node.pod();
  node.api.set(domain_path("d"), whole_domain({entry("node-b"), entry("node-a")}));
  node.domains.store().put(k8s::Object(node.api.at(domain_path("d"))));
  REQUIRE(find(node.domains.cached(domain_uid)->json(), "spec") == nullptr);
  CHECK(node.domains.text_of(DomainUid(domain_uid)) == "default/d");
  CHECK(node.prepare("a"));
}

TEST_CASE("a domain that changes for other nodes is no news", "[plugin][domains]") {
  if (fake::must_skip_root_tests()) return;
  ManagedNode node;
  int news = 0;
  node.domains.on_news([&] { ++news; });
  int version = 100;
  auto show = [&](JsonArray nodes) {
    node.domains.store().put(
        k8s::Object(whole_domain(std::move(nodes), std::to_string(++version))));
  };
  show({entry("node-a", "NotReady")});
  CHECK(news == 1);
  show({entry("node-a", "NotReady"), entry("node-b")});
  CHECK(news == 1);
  show({entry("node-a", "Ready"), entry("node-b")});
  CHECK(news == 2);
  node.forget_domain("d");
  CHECK(news == 3);
}
