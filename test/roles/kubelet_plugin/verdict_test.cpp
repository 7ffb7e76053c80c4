#include "roles/kubelet_plugin/verdict.hpp"

#include "catch.hpp"
#include "roles/common/names.hpp"
#include "roles/common/node_label.hpp"
#include "roles/kubelet_plugin/node_facts.hpp"
#include "roles/kubelet_plugin/node_label.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;

namespace {

const CliqueId own_clique{"11111111-2222-3333-4444-555555555555.7"};

Member member(bool ready, std::string ip = "10.0.0.1", CliqueId clique = own_clique) {
  Member entry;
  entry.node = NodeName("node-a");
  entry.ip = std::move(ip);
  entry.clique = std::move(clique);
  entry.index = 0;
  entry.ready = ready;
  return entry;
}

DaemonPod pod(std::string ip = "10.0.0.1", bool deleting = false) {
  DaemonPod read;
  read.key = {"nvdra", "daemon-a"};
  read.ip = std::move(ip);
  read.phase = "Running";
  read.deleting = deleting;
  return read;
}

using Pods = std::optional<std::vector<DaemonPod>>;

Sight sight(std::optional<Member> entry, Pods pods) {
  Sight seen;
  seen.domain = "default/d";
  seen.node = NodeName("node-a");
  seen.clique = own_clique;
  seen.source = "ComputeDomainClique nvdra/c";
  seen.member = std::move(entry);
  seen.pods = std::move(pods);
  return seen;
}

std::string text(const Sight& seen) {
  Verdict verdict = judge(seen);
  const Closed* closed = std::get_if<Closed>(&verdict);
  return closed ? closed->text : "";
}

}  // namespace

TEST_CASE("only a Ready entry of a pod that is here opens the gate", "[plugin][verdict]") {
  auto opens = [](std::optional<Member> entry, Pods pods) {
    return std::holds_alternative<Open>(judge(sight(entry, pods)));
  };
  CHECK(opens(member(true), Pods({pod()})));
  CHECK(opens(member(true), Pods({pod("10.0.0.9", true), pod()})));
  CHECK_FALSE(opens(member(false), Pods({pod()})));
  CHECK_FALSE(opens(member(true), Pods({pod("10.0.0.2")})));
  CHECK_FALSE(opens(member(true), Pods({pod("10.0.0.1", true)})));
  CHECK_FALSE(opens(member(true, ""), Pods({pod("")})));
  CHECK_FALSE(opens(member(true, "10.0.0.1", CliqueId("another.1")), Pods({pod()})));
  CHECK_FALSE(opens({}, Pods({pod()})));
}

TEST_CASE("an entry that was seen turning Ready needs no address of its pod yet",
          "[plugin][verdict]") {
  auto opens = [](Pods pods, bool seen_turning) {
    Sight seen = sight(member(true), std::move(pods));
    seen.seen_turning = seen_turning;
    return std::holds_alternative<Open>(judge(seen));
  };
  CHECK(opens(Pods({pod("")}), true));
  CHECK_FALSE(opens(Pods({pod("")}), false));
  CHECK_FALSE(opens(Pods({pod("10.0.0.2")}), true));
  CHECK_FALSE(opens(Pods({pod("", true)}), true));
  CHECK_FALSE(opens(Pods({pod(""), pod("10.0.0.1", true)}), true));
  CHECK_FALSE(opens(Pods(std::vector<DaemonPod>{}), true));
}

TEST_CASE("the pods are looked at when the entry says Ready", "[plugin][verdict]") {
  CHECK(std::holds_alternative<LookAtPods>(judge(sight(member(true), {}))));
  CHECK(std::holds_alternative<Closed>(judge(sight(member(false), {}))));
}

TEST_CASE("a closed gate says what the daemon says of nvidia-imex", "[plugin][verdict]") {
  k8s::Object object(Json{{"metadata",
                           {{"namespace", "nvdra"},
                            {"name", "daemon-a"},
                            {"annotations", {{imex_state_annotation, "INITIALIZING"}}}}},
                          {"status", {{"podIP", "10.0.0.1"}, {"phase", "Running"}}}});
  const DaemonPod pod = daemon_pod(object);
  CHECK_THAT(text(sight(member(false), Pods({pod}))),
             Catch::Contains("is NotReady in ComputeDomainClique nvdra/c (INITIALIZING): check "));
  CHECK_THAT(text(sight({}, Pods({pod}))), Catch::Contains("yet (INITIALIZING): check "));
}

TEST_CASE("a closed gate names domain, node, clique and what was seen", "[plugin][verdict]") {
  CHECK_THAT(text(sight({}, {})),
             Catch::Contains("ComputeDomain default/d") && Catch::Contains("node node-a") &&
                 Catch::Contains(own_clique.value) && Catch::Contains("has not joined"));
  CHECK_THAT(text(sight({}, Pods(std::vector<DaemonPod>{}))),
             Catch::Contains("no daemon pod on this node yet"));
  CHECK_THAT(text(sight(member(true), Pods({pod("10.0.0.1", true)}))),
             Catch::Contains("nvdra/daemon-a is ending"));
  DaemonPod pending = pod("");
  pending.phase = "Pending";
  pending.waits_for = "ContainerCreating";
  CHECK_THAT(text(sight({}, Pods({pending}))),
             Catch::Contains("daemon pod nvdra/daemon-a is Pending (ContainerCreating)"));
  DaemonPod moved = pod();
  moved.clique = "former.1";
  CHECK_THAT(text(sight({}, Pods({moved}))),
             Catch::Contains("serves clique \"former.1\"") && Catch::Contains("delete that pod"));
  CHECK_THAT(text(sight(member(false), Pods({pod()}))),
             Catch::Contains("is NotReady in ComputeDomainClique nvdra/c") &&
                 Catch::Contains("kubectl logs -n nvdra daemon-a"));
}

TEST_CASE("a pod's reason is its container's, or the scheduler's", "[plugin][verdict]") {
  Json scheduling{{"metadata", {{"name", "p"}, {"namespace", "n"}}},
                  {"status",
                   {{"phase", "Pending"},
                    {"conditions", JsonArray{{{"type", "PodScheduled"},
                                              {"status", "False"},
                                              {"reason", "Unschedulable"}}}}}}};
  CHECK(daemon_pod(k8s::Object(scheduling)).waits_for == "Unschedulable");
  CHECK_FALSE(daemon_pod(k8s::Object(scheduling)).clique);
  scheduling.at("metadata").as_object()["labels"] = {{clique_label, ""}};
  CHECK(daemon_pod(k8s::Object(scheduling)).clique == "");
}

TEST_CASE("the patches of the node label are guarded", "[plugin][node_label]") {
  k8s::Object node(Json{{"metadata", {{"name", "n"}, {"resourceVersion", "7"}}}});
  CHECK(
      to_text(put_label_patch(node, DomainUid("u"))) ==
      R"({"metadata":{"resourceVersion":"7","labels":{"resource.nvidia.com/computeDomain":"u"}}})");
  CHECK(
      to_text(remove_label_patch(DomainUid("u"))) ==
      R"([{"op":"test","path":"/metadata/labels/resource.nvidia.com~1computeDomain","value":"u"},)"
      R"({"op":"remove","path":"/metadata/labels/resource.nvidia.com~1computeDomain"}])");
}

TEST_CASE("drivers before 570.158.01 do not know host names", "[plugin][node_facts]") {
  CHECK(driver_refusal("570.158.01").empty());
  CHECK(driver_refusal("580.95.05").empty());
  CHECK(driver_refusal("no version").empty());
  CHECK_THAT(driver_refusal("570.86.15"), Catch::Contains("570.86.15"));
}
