#include "sandbox/controllers.hpp"

#include "catch.hpp"
#include "sandbox/controllers_allocator.hpp"
#include "sandbox/controllers_placement.hpp"
#include "world.hpp"

#include <set>

using namespace nvdra;
using namespace nvdra::sandbox;

namespace {

const std::string driver = "compute-domain.nvidia.com";

struct Cluster : World {
  Controllers controllers{loop.get_executor(), registry};

  Cluster() {
    device_class("channel",
                 "device.driver == 'D' && device.attributes['D'].type == 'channel' && "
                 "device.attributes['D'].id == 0");
    device_class("daemon", "device.driver == 'D' && device.attributes['D'].type == 'daemon'");
  }
  void device_class(const std::string& name, std::string expression) {
    for (std::size_t at; (at = expression.find("'D'")) != std::string::npos;)
      expression.replace(at, 3, "'" + driver + "'");
    Json object = json("{'metadata': {'name': '" + name + "'}}");
    object.get_object()["spec"] = JsonObject{
        {"selectors", JsonArray{JsonObject{{"cel", JsonObject{{"expression", expression}}}}}}};
    REQUIRE(registry.create(of("deviceclasses"), "", std::move(object)));
  }
  // A node with one channel and one daemon device.
  void node(const std::string& name, const std::string& labels = "") {
    make(
        "nodes", "",
        "{'metadata': {'name': '" + name + "', 'labels': {'name': '" + name + "'" + labels + "}}}");
    make("resourceslices", "",
         "{'metadata': {'name': 's-" + name + "'}, 'spec': {'driver': '" + driver +
             "', 'nodeName': '" + name + "', 'pool': {'name': '" + name +
             "', 'generation': 1, 'resourceSliceCount': 1}, 'devices': ["
             "{'name': 'channel-0', 'attributes': {'type': {'string': 'channel'}, 'id': {'int': "
             "0}}},"
             "{'name': 'daemon-0', 'attributes': {'type': {'string': 'daemon'}, 'id': {'int': "
             "0}}}]}}");
  }
  void claim_template(const std::string& name, const std::string& device_class_name = "channel") {
    make("resourceclaimtemplates", "default",
         "{'metadata': {'name': '" + name +
             "'}, 'spec': {'spec': {'devices': {'requests': [{'name': 'r', "
             "'exactly': {'deviceClassName': '" +
             device_class_name +
             "'}}], 'config': [{'requests': ['r'], "
             "'opaque': {'driver': '" +
             driver + "', 'parameters': {'domainID': 'x'}}}]}}}}");
  }
  ItemPtr pod(const std::string& name, const std::string& more = "") {
    return make("pods", "default",
                "{'metadata': {'name': '" + name +
                    "'}, 'spec': {'containers': [{'name': 'c', 'image': "
                    "'i'}]" +
                    more + "}}");
  }
  static std::string claiming(const std::string& claim_template) {
    return ", 'resourceClaims': [{'name': 'ch', 'resourceClaimTemplateName': '" + claim_template +
           "'}]";
  }
  Json get(std::string_view resource, const std::string& name,
           const std::string& space = "default") {
    ItemPtr item = registry.find(of(resource), {of(resource).type.namespaced ? space : "", name});
    return item ? item->json() : Json();
  }
  std::string node_of(const std::string& name) {
    return std::string(text_or_empty(get("pods", name), "spec/nodeName"));
  }
  void set_phase(const std::string& name, const std::string& phase) {
    REQUIRE(registry.patch(of("pods"), {"default", name},
                           json("{'status': {'phase': '" + phase + "'}}"), PatchForm::merge,
                           {.subresource = "status"}));
  }
  void confirm_end(const std::string& name) {
    REQUIRE(registry.remove(of("pods"), {"default", name}, {.grace = 0}));
  }
  std::vector<std::string> reasons() {
    std::vector<std::string> list;
    for (const ItemPtr& event : registry.all(of("events")))
      list.emplace_back(text_or_empty(event->json(), "reason"));
    return list;
  }
};

}  // namespace

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

TEST_CASE("a DaemonSet has one pod on each node that its template fits", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1", ", 'gpu': 'yes'");
  cluster.node("n2");
  cluster.make(
      "daemonsets", "default",
      "{'metadata': {'name': 'd'}, 'spec': {'selector': {'matchLabels': {'a': 'b'}}, 'template': "
      "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'nodeSelector': {'gpu': 'yes'}, 'containers': "
      "[{'name': 'c', 'image': 'i'}]}}}}");
  cluster.controllers.settle();
  auto pods = [&] { return cluster.registry.all(cluster.of("pods")); };
  REQUIRE(pods().size() == 1);
  CHECK(text_or_empty(pods()[0]->json(), "spec/nodeName") == "n1");

  REQUIRE(cluster.registry.patch(cluster.of("nodes"), {"", "n2"},
                                 json("{'metadata': {'labels': {'gpu': 'yes'}}}"),
                                 PatchForm::merge));
  cluster.controllers.settle();
  REQUIRE(pods().size() == 2);
  for (const ItemPtr& pod : pods())
    REQUIRE(cluster.registry.patch(
        cluster.of("pods"), pod->key(),
        json("{'status': {'conditions': [{'type': 'Ready', 'status': 'True'}]}}"), PatchForm::merge,
        {.subresource = "status"}));
  cluster.controllers.settle();
  Json set = cluster.get("daemonsets", "d");
  CHECK(int_or(set, "status/desiredNumberScheduled", 0) == 2);
  CHECK(int_or(set, "status/numberReady", 0) == 2);
  CHECK(int_or(set, "status/observedGeneration", 0) == 1);

  REQUIRE(cluster.registry.patch(cluster.of("nodes"), {"", "n1"},
                                 json("{'metadata': {'labels': {'gpu': null}}}"),
                                 PatchForm::merge));
  cluster.controllers.settle();
  std::size_t ending = 0;
  for (const ItemPtr& pod : pods())
    if (pod->deleting()) ++ending;
  CHECK(ending == 1);

  REQUIRE(cluster.registry.remove(cluster.of("daemonsets"), {"default", "d"}));
  cluster.controllers.settle();
  for (const ItemPtr& pod : pods()) CHECK(pod->deleting());
}

TEST_CASE("a changed DaemonSet template replaces its pods one after the other",
          "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.node("n2");
  cluster.make(
      "daemonsets", "default",
      "{'metadata': {'name': 'd'}, 'spec': {'selector': {'matchLabels': {'a': 'b'}}, 'template': "
      "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': "
      "'i'}]}}}}");
  cluster.controllers.settle();
  auto ready = [&] {
    for (const ItemPtr& pod : cluster.registry.all(cluster.of("pods")))
      REQUIRE(cluster.registry.patch(
          cluster.of("pods"), pod->key(),
          json("{'status': {'conditions': [{'type': 'Ready', 'status': 'True'}]}}"),
          PatchForm::merge, {.subresource = "status"}));
    cluster.controllers.settle();
  };
  auto ending = [&] {
    std::vector<std::string> names;
    for (const ItemPtr& pod : cluster.registry.all(cluster.of("pods")))
      if (pod->deleting()) names.emplace_back(pod->name());
    return names;
  };
  ready();
  REQUIRE(cluster.registry.patch(
      cluster.of("daemonsets"), {"default", "d"},
      json("{'spec': {'template': {'spec': {'containers': [{'name': 'c', 'image': 'j'}]}}}}"),
      PatchForm::strategic));
  cluster.controllers.settle();
  REQUIRE(ending().size() == 1);
  cluster.confirm_end(ending()[0]);
  cluster.controllers.settle();
  CHECK(ending().empty());
  ready();
  REQUIRE(ending().size() == 1);
  cluster.confirm_end(ending()[0]);
  cluster.controllers.settle();
  ready();
  CHECK(int_or(cluster.get("daemonsets", "d"), "status/updatedNumberScheduled", 0) == 2);
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

TEST_CASE("a Deployment keeps its number of pods and rolls to a new template",
          "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.make(
      "deployments", "default",
      "{'metadata': {'name': 'd'}, 'spec': {'replicas': 2, 'selector': {'matchLabels': {'a': "
      "'b'}}, "
      "'template': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', "
      "'image': 'i'}]}}}}");
  cluster.controllers.settle();
  auto images = [&] {
    std::multiset<std::string> list;
    for (const ItemPtr& pod : cluster.registry.all(cluster.of("pods")))
      if (!pod->deleting())
        list.emplace(text_or_empty(array_or_empty(pod->json(), "spec/containers").at(0), "image"));
    return list;
  };
  CHECK(images() == std::multiset<std::string>{"i", "i"});
  REQUIRE(cluster.registry.patch(
      cluster.of("deployments"), {"default", "d"},
      json("{'spec': {'template': {'spec': {'containers': [{'name': 'c', 'image': 'j'}]}}}}"),
      PatchForm::strategic));
  cluster.controllers.settle();
  CHECK(images().count("j") == 2);
  for (const ItemPtr& pod : cluster.registry.all(cluster.of("pods")))
    REQUIRE(cluster.registry.patch(
        cluster.of("pods"), pod->key(),
        json("{'status': {'conditions': [{'type': 'Ready', 'status': 'True'}]}}"), PatchForm::merge,
        {.subresource = "status"}));
  cluster.controllers.settle();
  CHECK(images() == std::multiset<std::string>{"j", "j"});
  CHECK(int_or(cluster.get("deployments", "d"), "status/readyReplicas", 0) == 2);
}

TEST_CASE("an indexed Job runs each index once and completes", "[sandbox][controllers]") {
  Cluster cluster;
  cluster.node("n1");
  cluster.make(
      "jobs", "default",
      "{'metadata': {'name': 'j'}, 'spec': {'completions': 2, 'parallelism': 2, 'completionMode': "
      "'Indexed', 'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', "
      "'image': 'i'}]}}}}");
  cluster.controllers.settle();
  std::set<std::string> hosts;
  for (const ItemPtr& pod : cluster.registry.all(cluster.of("pods"))) {
    hosts.emplace(text_or_empty(pod->json(), "spec/hostname"));
    cluster.set_phase(std::string(pod->name()), "Succeeded");
  }
  CHECK(hosts == std::set<std::string>{"j-0", "j-1"});
  cluster.controllers.settle();
  CHECK(text_or_empty(array_or_empty(cluster.get("jobs", "j"), "status/conditions").at(0),
                      "type") == "Complete");
  CHECK(cluster.registry.all(cluster.of("pods")).size() == 2);
}
