#include "roles/controller/membership.hpp"

#include "catch.hpp"
#include "roles/controller/members.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

constexpr std::int64_t slots = 18;

std::string waits(const Membership& members) {
  std::string text;
  for (const Waiting& each : members.waiting)
    text += (text.empty() ? "" : "; ") + each.node.value + ": " + each.why;
  return text;
}

// A domain of one node "a", whose entry is Ready.
Seen one(PodShape shape, std::string node_state = "True", bool entry_ready = true) {
  return {domain(),
          {clique({entry("a", 0, entry_ready)})},
          {pod(std::move(shape))},
          {node("a", node_state)},
          {}};
}

k8s::ObjectPtr with_nodes(std::vector<Member> members) {
  JsonArray nodes;
  for (const Member& member : members)
    nodes.push_back(member_entry(member, MemberList::domain_nodes));
  return changed(domain(), {{"status", {{"status", "Ready"}, {"nodes", nodes}}}});
}

}  // namespace

TEST_CASE("members come from all cliques of the domain, sorted by clique and slot",
          "[controller][members]") {
  Seen seen{domain(),
            {clique({entry("c", 0)}, clique_b), clique({entry("b", 1), entry("a", 0)})},
            {pod({.node = "a"}), pod({.node = "b"}), pod({.node = "c", .clique = clique_b})},
            {node("a"), node("b"), node("c")},
            {}};
  Membership members = assess(seen, slots);
  CHECK(told(members.nodes) == "a/0 ready, b/1 ready, c/0 ready");
  CHECK(members.ready == 3);
  CHECK(members.known == 3);
  CHECK(members.cliques.size() == 2);
  CHECK(members.waiting.empty());
}

TEST_CASE("an entry that says Ready counts only while nothing speaks against it (W-C18)",
          "[controller][members]") {
  CHECK(assess(one({.node = "a"}), slots).ready == 1);

  SECTION("its node is dead, and nobody evicts the pod") {
    const std::string state = GENERATE("Unknown", "False");
    Membership members = assess(one({.node = "a"}, state), slots);
    CHECK(told(members.nodes) == "a/0");
    CHECK(waits(members) == "a: the node is not Ready");
    CHECK(members.waiting.front().trouble);
  }
  SECTION("its pod is being deleted while the node is still in use") {
    Membership members = assess(one({.node = "a", .deleting = true}), slots);
    CHECK(told(members.nodes) == "a/0");
    CHECK(waits(members) == "a: pod driver/d-a is being deleted");
  }
  SECTION("its container has ended") {
    Json ended = {{"image", "i"}, {"state", {{"terminated", {{"exitCode", 3}}}}}};
    Membership members = assess(
        one({.node = "a", .ready = false, .status = {{"containerStatuses", JsonArray{ended}}}}),
        slots);
    CHECK(told(members.nodes) == "a/0");
    CHECK(waits(members) == "a: pod driver/d-a: its container has ended with exit status 3");
  }
  SECTION("its readiness probe begins to fail") {
    Json lost = {
        {"type", "Ready"}, {"status", "False"}, {"lastTransitionTime", "2026-01-02T03:00:06Z"}};
    Membership members =
        assess(one({.node = "a", .status = {{"conditions", JsonArray{lost}}}}), slots);
    CHECK(told(members.nodes) == "a/0");
    CHECK(waits(members) == "a: pod driver/d-a fails its readiness probe");
  }
}

TEST_CASE("a daemon's own word is believed before its first readiness probe",
          "[controller][members]") {
  CHECK(assess(one({.node = "a", .ready = false}), slots).ready == 1);
}

TEST_CASE("a daemon's own word is believed before the kubelet says that its container runs",
          "[controller][members]") {
  Json creating = {{"state", {{"waiting", {{"reason", "ContainerCreating"}}}}},
                   {"restartCount", 0}};
  auto seen_with = [&](std::string address, Json container) {
    Seen seen = one({.node = "a",
                     .ready = false,
                     .status = {{"phase", "Pending"},
                                {"podIP", nullptr},
                                {"containerStatuses", JsonArray{std::move(container)}}}});
    Json told = {{"metadata", {{"annotations", {{address_annotation, address}}}}}};
    seen.pods.front() = changed(seen.pods.front(), told);
    return seen;
  };
  CHECK(assess(seen_with("10.0.0.1", creating), slots).ready == 1);

  SECTION("not for an entry that a former pod has left") {
    Membership members = assess(seen_with("10.0.0.9", creating), slots);
    CHECK(members.ready == 0);
    CHECK(waits(members) == "a: pod driver/d-a is Pending");
  }
  SECTION("not once that container has ended") {
    creating.at("restartCount") = 1;
    CHECK(assess(seen_with("10.0.0.1", creating), slots).ready == 0);
  }
}

TEST_CASE("what keeps a daemon from being ready is named", "[controller][members]") {
  SECTION("IMEX") {
    Membership members = assess(one({.node = "a"}, "True", false), slots);
    CHECK(waits(members) == "a: nvidia-imex in pod driver/d-a is not READY");
    CHECK_FALSE(members.waiting.front().trouble);
  }
  SECTION("IMEX in its own words, also when its readiness probe begins to fail") {
    Json lost = {
        {"type", "Ready"}, {"status", "False"}, {"lastTransitionTime", "2026-01-02T03:00:06Z"}};
    Seen seen = one({.node = "a", .status = {{"conditions", JsonArray{lost}}}}, "True", false);
    seen.pods.front() = changed(
        seen.pods.front(), {{"metadata", {{"annotations", {{imex_state_annotation, "BUSY"}}}}}});
    Membership members = assess(seen, slots);
    CHECK(waits(members) == "a: nvidia-imex in pod driver/d-a is BUSY");
    CHECK(members.waiting.front().trouble);
  }
  SECTION("its image, in words that do not alternate with the kubelet's") {
    const std::string reason = GENERATE("ErrImagePull", "ImagePullBackOff");
    Json waiting = {{"image", "x/y:1"}, {"state", {{"waiting", {{"reason", reason}}}}}};
    Seen seen{domain(),
              {},
              {pod({.node = "a",
                    .clique = {},
                    .ready = false,
                    .status = {{"phase", "Pending"}, {"containerStatuses", JsonArray{waiting}}}})},
              {node("a")},
              {}};
    Membership members = assess(seen, slots);
    CHECK(waits(members) == "a: pod driver/d-a: cannot pull image x/y:1");
    CHECK(members.waiting.front().trouble);
    CHECK(members.known == 1);
    CHECK(members.nodes.empty());
  }
  SECTION("the scheduler") {
    Json unscheduled = {{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "Unschedulable"},
                        {"message", "0/2 nodes are available"}};
    Seen seen{domain(),
              {},
              {pod({.node = "a",
                    .clique = {},
                    .ready = false,
                    .status = {{"phase", "Pending"}, {"conditions", JsonArray{unscheduled}}}})},
              {node("a")},
              {}};
    CHECK(waits(assess(seen, slots)) ==
          "a: pod driver/d-a: cannot be scheduled: 0/2 nodes are available");
  }
  SECTION("no pod yet") {
    Seen seen{domain(), {}, {}, {node("a")}, {}};
    CHECK(waits(assess(seen, slots)) == "a: it has no daemon pod yet");
  }
  SECTION("a daemon that cannot join, in its own words") {
    const std::string why = "JOINING: the clique has another domain's label, so delete it";
    k8s::ObjectPtr stuck =
        changed(pod({.node = "a", .clique = {}, .ready = false}),
                {{"metadata", {{"annotations", {{imex_state_annotation, why}}}}}});
    Seen seen{domain(), {}, {stuck}, {node("a")}, {}};
    CHECK(waits(assess(seen, slots)) == "a: pod driver/d-a has not joined: " + why);
  }
  SECTION("the clique is full") {
    Seen seen{domain(),
              {clique({entry("a", 0), entry("b", 1)})},
              {pod({.node = "a"}), pod({.node = "b"}), pod({.node = "c"})},
              {node("a"), node("b"), node("c")},
              {}};
    Membership members = assess(seen, 2);
    CHECK(waits(members) ==
          "c: pod driver/d-c finds no free slot: clique " + clique_a + " has all its 2 members");
    CHECK(members.waiting.front().trouble);
  }
}

TEST_CASE("a pod that is not scheduled yet is known by the node that it was made for",
          "[controller][members]") {
  Json field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{"a"}}};
  Json term = {{"matchFields", JsonArray{field}}};
  Json required = {{"nodeSelectorTerms", JsonArray{term}}};
  Json affinity = {
      {"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", required}}}};
  Json raw = {{"metadata", {{"name", "p"}}}, {"spec", {{"affinity", affinity}}}};
  CHECK(read_daemon_pod(k8s::Object(trim_pod(raw))).node == NodeName("a"));
}

TEST_CASE("an entry without a pod is removed only when a live list lacks the pod too (A10)",
          "[controller][members]") {
  Seen seen{
      domain(), {clique({entry("a", 0), entry("b", 1)})}, {pod({.node = "b"})}, {node("b")}, {}};
  SECTION("not asked yet: it stays, and the question is raised") {
    Membership members = assess(seen, slots);
    CHECK(members.doubtful);
    CHECK(members.stale.empty());
    CHECK(members.nodes.size() == 2);
  }
  SECTION("the server has the pod: the cache lags, it stays") {
    seen.live_pods = {pod({.node = "a"}), pod({.node = "b"})};
    Membership members = assess(seen, slots);
    CHECK(members.stale.empty());
    CHECK(members.nodes.size() == 2);
  }
  SECTION("the server lacks it too: it goes, the other keeps its slot") {
    seen.live_pods = {pod({.node = "b"})};
    Membership members = assess(seen, slots);
    REQUIRE(members.stale.size() == 1);
    CHECK(told(members.stale.front().members) == "a/0 ready");
    CHECK(told(members.nodes) == "b/1 ready");
  }
}

TEST_CASE("which pod backs an entry", "[controller][members]") {
  struct Row {
    const char* why;
    PodShape pod;
    bool backs;
  };
  const Row row = GENERATE(values<Row>({
      {"of this clique", {.node = "a"}, true},
      {"not classified yet (report 44)", {.node = "a", .clique = {}}, true},
      {"not ready is no reason", {.node = "a", .ready = false}, true},
      {"another address is no reason", {.node = "a", .ip = "10.9.9.9"}, true},
      {"being deleted is no reason", {.node = "a", .deleting = true}, true},
      {"the node moved to another clique", {.node = "a", .clique = clique_b}, false},
      {"the node has lost its fabric", {.node = "a", .clique = ""}, false},
      {"of another node", {.node = "b"}, false},
      {"of another namespace", {.node = "a", .space = "elsewhere"}, false},
  }));
  INFO(row.why);
  Seen seen{domain(), {clique({entry("a", 0)})}, {pod(row.pod)}, {node("a")}, {}};
  seen.live_pods = seen.pods;
  CHECK(assess(seen, slots).stale.empty() == row.backs);
}

TEST_CASE("a node that is in two cliques for a moment is listed once, as its pod says (A11)",
          "[controller][members]") {
  Seen seen{
      domain(),
      {clique({entry("a", 0, false)}), clique({entry("a", 3)}, clique_b)},
      {pod({.node = "a", .clique = clique_b}), pod({.node = "a", .clique = {}, .name = "old"})},
      {node("a")},
      {}};
  Membership members = assess(seen, slots);
  CHECK(told(members.nodes) == "a/3 ready");
  CHECK(members.ready == 1);
  CHECK(members.waiting.empty());
  CHECK(members.cliques.size() == 1);
}

TEST_CASE("entries that older daemons wrote into the status are merged, not wiped (W-C17)",
          "[controller][members]") {
  Seen seen{with_nodes({entry("a", 0), entry("old", 1)}),
            {clique({entry("a", 0)})},
            {pod({.node = "a"}), pod({.node = "old", .ip = "10.0.0.2", .gates = gates_off})},
            {node("a"), node("old")},
            {}};
  CHECK(told(assess(seen, slots).nodes) == "a/0 ready, old/1 ready");

  SECTION("their status is theirs, even while it does not count") {
    seen.nodes = {node("a"), node("old", "Unknown")};
    Membership members = assess(seen, slots);
    CHECK(told(members.nodes) == "a/0 ready, old/1 ready");
    CHECK(members.ready == 1);
    CHECK(waits(members) == "old: the node is not Ready");
  }
  SECTION("a pod without an address yet keeps its entry, another address does not") {
    seen.pods[1] = pod({.node = "old", .ip = "", .gates = gates_off});
    CHECK(assess(seen, slots).nodes.size() == 2);
    seen.pods[1] = pod({.node = "old", .ip = "10.7.7.7", .gates = gates_off});
    seen.live_pods = seen.pods;
    CHECK(told(assess(seen, slots).nodes) == "a/0 ready");
  }
  SECTION("gone only on proof") {
    seen.pods.pop_back();
    Membership members = assess(seen, slots);
    CHECK(members.doubtful);
    CHECK(members.nodes.size() == 2);
    seen.live_pods = seen.pods;
    CHECK(told(assess(seen, slots).nodes) == "a/0 ready");
  }
}

TEST_CASE("the copy of an entry that its clique has lost goes without a question",
          "[controller][members]") {
  Seen seen{
      with_nodes({entry("a", 0)}), {clique({})}, {pod({.node = "a", .deleting = true})}, {}, {}};
  Membership members = assess(seen, slots);
  CHECK(members.nodes.empty());
  CHECK_FALSE(members.doubtful);
  CHECK(members.waiting.empty());
}

TEST_CASE("nodes without fabric are listed once each, the newer pod wins (report 49)",
          "[controller][members]") {
  Seen seen{domain(),
            {},
            {pod({.node = "a", .clique = "", .ready = false, .deleting = true, .name = "going"}),
             pod({.node = "a", .clique = "", .ip = "10.0.0.9", .name = "new"})},
            {node("a")},
            {}};
  Membership members = assess(seen, slots);
  REQUIRE(members.nodes.size() == 1);
  CHECK(told(members.nodes) == "a/-1 ready");
  CHECK(members.nodes.front().ip == "10.0.0.9");
  CHECK(members.cliques.empty());
}

TEST_CASE("a daemon that leaves because its node is no longer used makes nothing wait",
          "[controller][members]") {
  Seen seen{domain(),
            {clique({entry("a", 0), entry("b", 1)})},
            {pod({.node = "a"}), pod({.node = "b", .ready = false, .deleting = true})},
            {node("a")},
            {}};
  Membership members = assess(seen, slots);
  CHECK(members.waiting.empty());
}

TEST_CASE("two members with one index are reported, both nodes named", "[controller][members]") {
  Seen seen{domain(),
            {clique({entry("a", 0), entry("b", 0)})},
            {pod({.node = "a"}), pod({.node = "b"})},
            {node("a"), node("b")},
            {}};
  Membership members = assess(seen, slots);
  REQUIRE(members.findings.size() == 1);
  CHECK_THAT(members.findings.front(), Catch::Contains("a and b have the same index 0"));
}
