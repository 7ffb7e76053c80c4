#include "roles/controller/patches.hpp"

#include "catch.hpp"
#include "roles/common/node_label.hpp"
#include "roles/controller/members.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

constexpr WallClock::time_point now{};

Plan saying(std::string reason, std::string message = "m", std::vector<Member> nodes = {}) {
  Plan plan;
  plan.findings = {{"Ready", false, std::move(reason), std::move(message)}};
  plan.nodes = std::move(nodes);
  plan.node_summary = "0/1";
  return plan;
}

// The domain after the server has taken the patch.
k8s::ObjectPtr after(const k8s::ObjectPtr& before, const Plan& plan) {
  auto change = status_patch(*before, plan, now);
  REQUIRE(change);
  return changed(before, change->patch);
}

}  // namespace

TEST_CASE("a status that says so already is not written again", "[controller][patches]") {
  Plan plan = saying("Waiting", "m", {entry("a", 0)});
  auto written = after(domain(), plan);
  CHECK_FALSE(status_patch(*written, plan, now + 1h));
}

TEST_CASE("a change of members is guarded by the version, of conditions alone it is not",
          "[controller][patches]") {
  auto members = status_patch(*domain(), saying("Waiting", "m", {entry("a", 0)}), now);
  REQUIRE(members);
  CHECK(text_or_empty(members->patch, "metadata/resourceVersion") == "10");
  auto words = status_patch(*domain(), saying("Waiting"), now);
  REQUIRE(words);
  CHECK(find(words->patch, "metadata") == nullptr);
}

TEST_CASE("only words that differ are not urgent", "[controller][patches]") {
  auto written = after(domain(), saying("Waiting", "for a", {entry("a", 0, false)}));
  auto urgent = [&](const Plan& plan) {
    auto change = status_patch(*written, plan, now);
    REQUIRE(change);
    return change->urgent;
  };
  CHECK_FALSE(urgent(saying("Waiting", "for a, which is Pending", {entry("a", 0, false)})));
  CHECK(urgent(saying("Failing", "for a", {entry("a", 0, false)})));
  CHECK(urgent(saying("Waiting", "for a", {entry("a", 0, true)})));
  CHECK(urgent(saying("Waiting", "for a", {})));
  Plan more = saying("Waiting", "for a", {entry("a", 0, false)});
  more.findings.push_back({"SingleClique", false, "SeveralCliques", "two"});
  CHECK(urgent(more));
}

TEST_CASE("the order of members is no difference, and the last one takes the key along",
          "[controller][patches]") {
  auto written = after(domain(), saying("Waiting", "m", {entry("a", 0), entry("b", 1)}));
  CHECK_FALSE(status_patch(*written, saying("Waiting", "m", {entry("b", 1), entry("a", 0)}), now));
  auto empty = after(written, saying("Waiting", "m", {}));
  CHECK(find(empty->json(), "status/nodes") == nullptr);
}

TEST_CASE("an Event is due for a new reason, and for new words of a warning",
          "[controller][patches]") {
  auto written = after(domain(), saying("Waiting", "for a"));
  CHECK(news(*written, saying("Waiting", "for b")).empty());
  CHECK(news(*written, saying("Failing", "for a")).size() == 1);
  Plan warning = saying("Waiting", "for b");
  warning.findings.front().warning = true;
  CHECK(news(*written, warning).size() == 1);
}

TEST_CASE("stale entries leave from the back, each only as long as it is still the same",
          "[controller][patches]") {
  auto members = clique({entry("a", 0), entry("b", 1), entry("c", 2)});
  std::vector<Member> all = read_members(members->json(), MemberList::clique_daemons).all;
  CHECK(to_text(prune_patch({members, {all[0], all[2]}})) ==
        R"([{"op":"test","path":"/daemons/2/ipAddress","value":"10.0.0.3"},)"
        R"({"op":"test","path":"/daemons/2/nodeName","value":"c"},)"
        R"({"op":"remove","path":"/daemons/2"},)"
        R"({"op":"test","path":"/daemons/0/ipAddress","value":"10.0.0.1"},)"
        R"({"op":"test","path":"/daemons/0/nodeName","value":"a"},)"
        R"({"op":"remove","path":"/daemons/0"}])");
}

TEST_CASE("a node's label goes only while it is that of the domain (report 58)",
          "[controller][patches]") {
  CHECK(to_text(remove_label_patch(DomainUid("u"))) ==
        R"([{"op":"test","path":"/metadata/labels/resource.nvidia.com~1computeDomain",)"
        R"("value":"u"},)"
        R"({"op":"remove","path":"/metadata/labels/resource.nvidia.com~1computeDomain"}])");
}
