#include "sandbox/controllers.hpp"

#include "catch.hpp"
#include "sandbox/controllers_world.hpp"

using namespace nvdra;
using namespace nvdra::sandbox;
using namespace nvdra::sandbox::controllers_test;

TEST_CASE("a pod gets a claim from its template, devices and a node", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.claim_template("t");
  ItemPtr pod = cluster.pod("p", Cluster::claiming("t"));
  cluster.controllers.settle();

  CHECK(cluster.node_of("p") == "n1");
  Json bound = cluster.get("pods", "p");
  std::string claim_name(text_or_empty(array_or_empty(bound, "status/resourceClaimStatuses").at(0),
                                       "resourceClaimName"));
  CHECK(claim_name.starts_with("p-ch-"));
  Json claim = cluster.get("resourceclaims", claim_name);
  CHECK(
      *find(claim, "status/allocation/devices/results") ==
      json("[{'request': 'r', 'driver': '" + driver + "', 'pool': 'n1', 'device': 'channel-0'}]"));
  CHECK(*find(claim, "status/allocation/devices/config") ==
        json("[{'requests': ['r'], 'opaque': {'driver': '" + driver +
             "', 'parameters': {'domainID': 'x'}}, 'source': 'FromClaim'}]"));
  CHECK(*find(claim, "status/reservedFor") ==
        json("[{'resource': 'pods', 'name': 'p', 'uid': '" + std::string(pod->uid()) + "'}]"));
  CHECK(text_or_empty(array_or_empty(claim, "metadata/ownerReferences").at(0), "uid") ==
        pod->uid());
  CHECK(cluster.reasons() == std::vector<std::string>{"Scheduled"});
}

TEST_CASE("a device is given to one claim only, and again when its pod has gone",
          "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.claim_template("t");
  cluster.pod("a", Cluster::claiming("t"));
  cluster.controllers.settle();
  cluster.pod("b", Cluster::claiming("t"));
  cluster.controllers.settle();
  CHECK(cluster.node_of("a") == "n1");
  CHECK(cluster.node_of("b").empty());
  Json waiting = cluster.get("pods", "b");
  CHECK(text_or_empty(array_or_empty(waiting, "status/conditions").at(0), "message") ==
        "0/1 nodes are available: 1 cannot allocate all claims.");

  REQUIRE(cluster.registry.remove(cluster.of("pods"), {"default", "a"}));
  cluster.controllers.settle();
  CHECK(cluster.node_of("b").empty());
  cluster.confirm_end("a");
  cluster.controllers.settle();
  CHECK(cluster.node_of("b") == "n1");
  CHECK(cluster.registry.all(cluster.of("resourceclaims")).size() == 1);
}

TEST_CASE("a pod that has ended gives its devices back", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.claim_template("t");
  cluster.pod("a", Cluster::claiming("t"));
  cluster.controllers.settle();
  cluster.set_phase("a", "Succeeded");
  cluster.controllers.settle();
  CHECK(cluster.registry.all(cluster.of("resourceclaims")).empty());
}

TEST_CASE("a claim of the user is shared by its pods and released by the last",
          "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.node("n2");
  cluster.make(
      "resourceclaims", "default",
      "{'metadata': {'name': 'mine'}, 'spec': {'devices': {'requests': [{'name': 'r', 'exactly': "
      "{'deviceClassName': 'channel'}}]}}}");
  std::string use = ", 'resourceClaims': [{'name': 'x', 'resourceClaimName': 'mine'}]";
  cluster.pod("a", use);
  cluster.pod("b", use);
  cluster.controllers.settle();
  CHECK(cluster.node_of("a") == cluster.node_of("b"));
  CHECK_FALSE(cluster.node_of("a").empty());
  CHECK(array_or_empty(cluster.get("resourceclaims", "mine"), "status/reservedFor").size() == 2);
  cluster.set_phase("a", "Failed");
  cluster.confirm_end("b");
  cluster.controllers.settle();
  Json claim = cluster.get("resourceclaims", "mine");
  CHECK_FALSE(find(claim, "status/allocation"));
  CHECK(array_or_empty(claim, "metadata/finalizers").empty());
}

TEST_CASE("a missing template or class is told and healed", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.pod("p", Cluster::claiming("t"));
  cluster.controllers.settle();
  CHECK(cluster.reasons() == std::vector<std::string>{"FailedResourceClaimCreation"});
  cluster.claim_template("t", "special");
  cluster.controllers.settle();
  Json waiting = cluster.get("pods", "p");
  CHECK_THAT(
      std::string(text_or_empty(array_or_empty(waiting, "status/conditions").at(0), "message")),
      Catch::Contains("device class special does not exist"));
  cluster.device_class("special", "device.driver == 'D'");
  cluster.controllers.settle();
  CHECK(cluster.node_of("p") == "n1");
}

TEST_CASE("which nodes a pod may run on", "[sandbox][controllers]") {
  struct Row {
    const char* why;
    const char* spec;
    const char* node;
    Fit expected;
  };
  // clang-format off
  const Row row = GENERATE(values<Row>({
      {"nothing asked", "{}", "{}", Fit::fits},
      {"label there", "{'nodeSelector': {'a': 'b'}}", "{'metadata': {'labels': {'a': 'b'}}}", Fit::fits},
      {"label missing", "{'nodeSelector': {'a': 'b'}}", "{}", Fit::wrong_node},
      {"affinity exists", "{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'a', 'operator': 'Exists'}]}]}}}}", "{'metadata': {'labels': {'a': ''}}}", Fit::fits},
      {"affinity not in", "{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'a', 'operator': 'NotIn', 'values': ['x']}]}]}}}}", "{'metadata': {'labels': {'a': 'x'}}}", Fit::wrong_node},
      {"by name", "{'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n']}]}]}}}}", "{'metadata': {'name': 'n'}}", Fit::fits},
      {"tainted", "{}", "{'spec': {'taints': [{'key': 'k', 'effect': 'NoSchedule'}]}}", Fit::tainted},
      {"preference only", "{}", "{'spec': {'taints': [{'key': 'k', 'effect': 'PreferNoSchedule'}]}}", Fit::fits},
      {"tolerates everything", "{'tolerations': [{'operator': 'Exists'}]}", "{'spec': {'taints': [{'key': 'k', 'effect': 'NoExecute'}]}}", Fit::fits},
      {"tolerates by value", "{'tolerations': [{'key': 'k', 'value': 'v'}]}", "{'spec': {'taints': [{'key': 'k', 'value': 'w', 'effect': 'NoSchedule'}]}}", Fit::tainted},
      {"cordoned", "{}", "{'spec': {'unschedulable': true}}", Fit::unschedulable},
      {"not ready", "{}", "{'status': {'conditions': [{'type': 'Ready', 'status': 'False'}]}}", Fit::tainted},
  }));
  // clang-format on
  INFO(row.why);
  CHECK(fit(json(row.spec), json(row.node)) == row.expected);
}

TEST_CASE("dependents go when their last owner has gone", "[sandbox][controllers][gc]") {
  Cluster cluster;
  auto owner = [&](const char* name) {
    return cluster.make("configmaps", "default",
                        std::string("{'metadata': {'name': '") + name + "'}}");
  };
  auto reference = [](const ItemPtr& item) {
    return "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': '" + std::string(item->name()) +
           "', 'uid': '" + std::string(item->uid()) + "'}";
  };
  ItemPtr a = owner("a");
  ItemPtr b = owner("b");
  cluster.make("computedomaincliques", "default",
               "{'metadata': {'name': 'c', 'ownerReferences': [" + reference(a) + "," +
                   reference(b) + "]}}");
  cluster.controllers.settle();
  REQUIRE(cluster.registry.remove(cluster.of("configmaps"), a->key()));
  cluster.controllers.settle();
  CHECK(
      array_or_empty(cluster.get("computedomaincliques", "c"), "metadata/ownerReferences").size() ==
      1);
  REQUIRE(cluster.registry.remove(cluster.of("configmaps"), b->key()));
  cluster.controllers.settle();
  CHECK(cluster.get("computedomaincliques", "c").is_null());
}

TEST_CASE("an object whose owner never was, or lives elsewhere, is collected",
          "[sandbox][controllers][gc]") {
  Cluster cluster;
  cluster.make("namespaces", "", "{'metadata': {'name': 'other'}}");
  ItemPtr elsewhere = cluster.make("configmaps", "other", "{'metadata': {'name': 'a'}}");
  for (const std::string& uid : {std::string("none"), std::string(elsewhere->uid())})
    cluster.make(
        "configmaps", "default",
        "{'metadata': {'generateName': 'x-', 'ownerReferences': [{'apiVersion': 'v1', 'kind': "
        "'ConfigMap', 'name': 'a', 'uid': '" +
            uid + "'}]}}");
  cluster.controllers.settle();
  for (const ItemPtr& item : cluster.registry.all(cluster.of("configmaps"), "default"))
    CHECK(item->name() == "kube-root-ca.crt");
}

TEST_CASE("foreground deletion waits for dependents, orphan leaves them",
          "[sandbox][controllers][gc]") {
  Cluster cluster;
  auto pair = [&](const std::string& name) {
    ItemPtr owner = cluster.make("configmaps", "default", "{'metadata': {'name': '" + name + "'}}");
    cluster.make("configmaps", "default",
                 "{'metadata': {'name': '" + name +
                     "-d', 'finalizers': ['a/b'], 'ownerReferences': "
                     "[{'apiVersion': 'v1', 'kind': 'ConfigMap', 'name': '" +
                     name + "', 'uid': '" + std::string(owner->uid()) +
                     "', 'blockOwnerDeletion': true}]}}");
    return owner;
  };
  const Resource& maps = cluster.of("configmaps");
  REQUIRE(cluster.registry.remove(maps, pair("f")->key(), {.propagation = "Foreground"}));
  cluster.controllers.settle();
  CHECK_FALSE(cluster.get("configmaps", "f").is_null());
  CHECK(find(cluster.get("configmaps", "f-d"), "metadata/deletionTimestamp"));
  REQUIRE(cluster.registry.patch(maps, {"default", "f-d"},
                                 json("{'metadata': {'finalizers': null}}"), PatchForm::merge));
  cluster.controllers.settle();
  CHECK(cluster.get("configmaps", "f").is_null());

  REQUIRE(cluster.registry.remove(maps, pair("o")->key(), {.propagation = "Orphan"}));
  cluster.controllers.settle();
  CHECK(cluster.get("configmaps", "o").is_null());
  Json left = cluster.get("configmaps", "o-d");
  CHECK_FALSE(left.is_null());
  CHECK(array_or_empty(left, "metadata/ownerReferences").empty());
}

TEST_CASE("a namespace is empty before it goes", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.make("namespaces", "", "{'metadata': {'name': 'n'}}");
  cluster.controllers.settle();
  CHECK_FALSE(cluster.get("serviceaccounts", "default", "n").is_null());
  cluster.make("configmaps", "n", "{'metadata': {'name': 'c', 'finalizers': ['a/b']}}");
  REQUIRE(cluster.registry.remove(cluster.of("namespaces"), {"", "n"}));
  cluster.controllers.settle();
  CHECK(text_or_empty(cluster.get("namespaces", "n"), "status/phase") == "Terminating");
  REQUIRE(cluster.registry.patch(cluster.of("configmaps"), {"n", "c"},
                                 json("{'metadata': {'finalizers': null}}"), PatchForm::merge));
  cluster.controllers.settle();
  CHECK(cluster.get("namespaces", "n").is_null());
}

TEST_CASE("a CRD takes its objects along and can come back", "[sandbox][controllers][crd]") {
  Cluster cluster;
  cluster.domain("d");
  Json definition = cluster.get("customresourcedefinitions", "computedomains.resource.nvidia.com");
  REQUIRE(cluster.registry.remove(cluster.of("customresourcedefinitions"),
                                  {"", "computedomains.resource.nvidia.com"}));
  cluster.controllers.settle();
  CHECK_FALSE(cluster.registry.catalog().find("resource.nvidia.com", "", "computedomains"));
  metadata_of(definition) = {{"name", "computedomains.resource.nvidia.com"}};
  definition.get_object().erase("status");
  REQUIRE(cluster.registry.create(cluster.of("customresourcedefinitions"), "", definition));
  CHECK(cluster.registry.all(cluster.of("computedomains")).empty());
  cluster.domain("d");
}

TEST_CASE("pods of a removed node are removed", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.pod("p");
  cluster.controllers.settle();
  REQUIRE(cluster.registry.remove(cluster.of("nodes"), {"", "n1"}));
  cluster.controllers.settle();
  CHECK(cluster.get("pods", "p").is_null());
}
