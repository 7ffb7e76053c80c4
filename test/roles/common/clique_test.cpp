#include "roles/common/clique.hpp"

#include "catch.hpp"
#include "roles/common/names.hpp"

using namespace nvdra;
using namespace nvdra::roles;

namespace {

k8s::Object clique(const char* text) {
  Result<Json> json = parse_json(text);
  REQUIRE(json);
  return k8s::Object(*std::move(json));
}

constexpr const char* two_members = R"({
  "metadata": {"name": "u.c.1", "resourceVersion": "7",
               "labels": {"resource.nvidia.com/computeDomain": "u",
                          "resource.nvidia.com/computeDomain.cliqueID": "c.1"}},
  "daemons": [
    {"nodeName": "a", "ipAddress": "10.0.0.1", "cliqueID": "c.1", "index": 0, "status": "Ready"},
    {"nodeName": "b", "ipAddress": "10.0.0.2", "cliqueID": "c.1", "index": 2}]})";

}  // namespace

TEST_CASE("members are read with their places, a missing status is NotReady", "[roles][clique]") {
  k8s::Object object = clique(two_members);
  Members members = read_members(object.json(), MemberList::clique_daemons);
  REQUIRE(members.all.size() == 2);
  CHECK(members.findings.empty());
  CHECK(members.all[0].ready);
  CHECK_FALSE(members.all[1].ready);
  CHECK(members.of(NodeName("b"))->position == 1);
  CHECK(members.of(NodeName("c")) == nullptr);
  CHECK(lowest_free_index(members.all, 18) == 1);
  CHECK(lowest_free_index(members.all, 1) == std::nullopt);
  CHECK(domain_of(object).value == "u");
  CHECK(clique_of(object).value == "c.1");
}

TEST_CASE("a clique is the one that its name says, whatever became of its label",
          "[roles][clique]") {
  Json json = clique(two_members).json();
  json.at("metadata").at("labels").as_object()[clique_label] = "other.9";
  CHECK(clique_of(k8s::Object(json)).value == "c.1");
  json.at("metadata").at("labels").as_object().erase(std::string(clique_label));
  CHECK(clique_of(k8s::Object(json)).value == "c.1");

  json.at("metadata").at("labels").as_object()[clique_label] = "other.9";
  for (const char* name : {"by-hand", "u.", "u2.c.1"}) {
    json.at("metadata").as_object()["name"] = name;
    CHECK(clique_of(k8s::Object(json)).value == "other.9");
  }
}

TEST_CASE("entries without a node, or of one named before, are skipped and named",
          "[roles][clique]") {
  k8s::Object object = clique(R"({"status": {"nodes": [
      {"name": "a", "ipAddress": "1", "cliqueID": "", "index": 3},
      {"ipAddress": "2"}, 5, {"name": "a", "ipAddress": "4"}]}})");
  Members members = read_members(object.json(), MemberList::domain_nodes);
  REQUIRE(members.all.size() == 1);
  CHECK(members.all[0].index == 3);
  CHECK(members.findings ==
        std::vector<std::string>{"status/nodes[1] has no name and is skipped",
                                 "status/nodes[2] has no name and is skipped",
                                 "status/nodes[3] repeats the node a and is skipped"});
}

TEST_CASE("a change of one entry is guarded by its node name", "[roles][clique]") {
  Members members = read_members(clique(two_members).json(), MemberList::clique_daemons);
  CHECK(to_text(set_status_patch(members.all[1], MemberList::clique_daemons, true)) ==
        R"([{"op":"test","path":"/daemons/1/nodeName","value":"b"},)"
        R"({"op":"add","path":"/daemons/1/status","value":"Ready"}])");
  CHECK(to_text(remove_patch(members.all[0], MemberList::clique_daemons)) ==
        R"([{"op":"test","path":"/daemons/0/nodeName","value":"a"},)"
        R"({"op":"remove","path":"/daemons/0"}])");
}

TEST_CASE("a new entry is guarded by the version of the object", "[roles][clique]") {
  Member member{NodeName("n"), "10.0.0.3", CliqueId("c.1"), 1, false};
  const k8s::Object there = clique(two_members);
  CHECK(to_text(append_patch(there, member, MemberList::clique_daemons, version_test(there))) ==
        R"([{"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
        R"({"op":"add","path":"/daemons/-","value":{"nodeName":"n","ipAddress":"10.0.0.3",)"
        R"("cliqueID":"c.1","index":1,"status":"NotReady"}}])");
}

TEST_CASE("the first entry makes the list, and the status around it", "[roles][clique]") {
  Member member{NodeName("n"), "10.0.0.3", CliqueId(), -1, false};
  const k8s::Object there = clique(R"({"metadata": {"resourceVersion": "1"}})");
  JsonArray patch = append_patch(there, member, MemberList::domain_nodes, version_test(there));
  CHECK(to_text(patch) ==
        R"([{"op":"test","path":"/metadata/resourceVersion","value":"1"},)"
        R"({"op":"add","path":"/status","value":{"status":"NotReady"}},)"
        R"({"op":"add","path":"/status/nodes","value":[{"name":"n","ipAddress":"10.0.0.3",)"
        R"("cliqueID":"","index":-1,"status":"NotReady"}]}])");
}
