// What makes pods: DaemonSets, Deployments, Jobs.
#include "catch.hpp"
#include "sandbox/controllers.hpp"
#include "sandbox/controllers_world.hpp"

using namespace nvdra;
using namespace nvdra::sandbox;
using namespace nvdra::sandbox::controllers_test;

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
