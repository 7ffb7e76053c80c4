#include "roles/controller/daemon_set.hpp"

#include "catch.hpp"
#include "roles/controller/daemon_pod.hpp"
#include "roles/controller/world.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

const DaemonShape shape{.space = "driver",
                        .image = "driver:1",
                        .pull_secrets = {"a", "b"},
                        .verbosity = 6,
                        .max_nodes = 18,
                        .overrides = "IMEX_NODE_DISCONNECTED_GRACE_TIME=60",
                        .priority_class = "system-node-critical",
                        .gates = "AllAlpha=false,"};

Json made(const DaemonShape& with = shape) {
  return daemon_set(DomainUid(uid), "driver", with);
}

const Json& pod_of(const Json& set) {
  return set.at("spec").at("template").at("spec");
}

const Json& container_of(const Json& set) {
  return pod_of(set).at("containers").at(0);
}

std::string variables(const Json& set) {
  std::string text;
  for (const Json& each : container_of(set).at("env").get_array()) {
    std::string_view path = text_or_empty(each, "valueFrom/fieldRef/fieldPath");
    text += std::string(text_or_empty(each, "name")) + "=" +
            std::string(path.empty() ? text_or_empty(each, "value") : path) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("the daemons' DaemonSet is found by the domain's UID alone", "[controller][daemon_set]") {
  Json set = made();
  Json labels = {{domain_label, uid}};
  CHECK(set.at("metadata").at("name") == Json("computedomain-daemon-" + uid));
  CHECK(set.at("metadata").at("finalizers") == Json(JsonArray{std::string(finalizer)}));
  CHECK(set.at("metadata").at("labels") == labels);
  CHECK(set.at("spec").at("selector").at("matchLabels") == labels);
  CHECK(set.at("spec").at("template").at("metadata").at("labels") == labels);
  CHECK(pod_of(set).at("nodeSelector") == labels);
}

TEST_CASE("a daemon's container is told what it needs", "[controller][daemon_set]") {
  Json set = made();
  CHECK(to_text(container_of(set).at("command")) ==
        R"x(["compute-domain-daemon","-v","$(LOG_VERBOSITY)","run"])x");
  CHECK(to_text(container_of(set).at("resources")) ==
        R"({"claims":[{"name":"compute-domain-daemon"}]})");
  CHECK(variables(set) ==
        "LOG_VERBOSITY=6\nMAX_NODES_PER_IMEX_DOMAIN=18\nNVIDIA_VISIBLE_DEVICES=void\n"
        "NODE_NAME=spec.nodeName\nPOD_IP=status.podIP\nPOD_UID=metadata.uid\n"
        "POD_NAME=metadata.name\nPOD_NAMESPACE=metadata.namespace\nFEATURE_GATES=AllAlpha=false,\n"
        "IMEX_CONFIG_OVERRIDES=IMEX_NODE_DISCONNECTED_GRACE_TIME=60\n");
  DaemonShape plain = shape;
  plain.overrides.clear();
  CHECK_THAT(variables(made(plain)), !Catch::Contains("IMEX_CONFIG_OVERRIDES"));
}

TEST_CASE("a daemon's probes all ask `check`", "[controller][daemon_set]") {
  struct Row {
    const char* name;
    int period;
    int failures;
  };
  const Row row = GENERATE(values<Row>(
      {{"startupProbe", 1, 1200}, {"livenessProbe", 60, 20}, {"readinessProbe", 10, 1}}));
  Json set = made();
  const Json& probe = container_of(set).at(row.name);
  CHECK(to_text(probe.at("exec").at("command")) ==
        R"x(["compute-domain-daemon","-v","$(LOG_VERBOSITY)","check"])x");
  CHECK(int_or(probe, "periodSeconds", 0) == row.period);
  CHECK(int_or(probe, "failureThreshold", 0) == row.failures);
  CHECK(int_or(probe, "timeoutSeconds", 0) == 10);
}

TEST_CASE("daemons run on tainted nodes, with pull secrets and priority when there are any",
          "[controller][daemon_set]") {
  Json set = made();
  CHECK(
      to_text(pod_of(set).at("tolerations")) ==
      R"([{"operator":"Exists","effect":"NoSchedule"},{"operator":"Exists","effect":"NoExecute"},)"
      R"({"operator":"Exists","effect":"PreferNoSchedule"}])");
  CHECK(to_text(pod_of(set).at("imagePullSecrets")) == R"([{"name":"a"},{"name":"b"}])");
  CHECK(pod_of(set).at("priorityClassName") == Json("system-node-critical"));
  CHECK(to_text(pod_of(set).at("dnsConfig")) == R"({"options":[{"name":"ndots","value":"1"}]})");
  Json bare = made({.space = "driver", .image = "driver:1"});
  CHECK(find(pod_of(bare), "imagePullSecrets") == nullptr);
  CHECK(find(pod_of(bare), "priorityClassName") == nullptr);
}

TEST_CASE("daemons get the requests and limits that were asked for (report 128)",
          "[controller][daemon_set]") {
  DaemonShape guaranteed = shape;
  Result<JsonObject> resources = parse_daemon_resources(
      R"({"limits":{"cpu":1,"memory":"256Mi"},"requests":{"cpu":1,"memory":"256Mi"}})");
  REQUIRE(resources);
  guaranteed.resources = *resources;
  const Json set = made(guaranteed);
  const Json& found = container_of(set).at("resources");
  CHECK(found.at("limits") == found.at("requests"));
  CHECK(found.at("limits").at("memory") == Json("256Mi"));
  CHECK(to_text(found.at("claims")) == R"([{"name":"compute-domain-daemon"}])");
  CHECK(fit(k8s::Object(made()), made(guaranteed)) == Fit::outdated);
  CHECK(differences(k8s::Object(made()), made(guaranteed)) == "resources");
}

TEST_CASE("requests and limits that are none are refused by name", "[controller][daemon_set]") {
  CHECK(parse_daemon_resources("")->empty());
  struct Row {
    const char* text;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {"cpu=1", "is not a JSON object"},
      {"[]", "daemon.resources of the chart) is not a JSON object"},
      {R"({"claims":[]})", "has \"claims\": only"},
      {R"({"limits":5})", "has \"limits\": only"},
      {R"({"limits":{"cpu":[1]}})", "limits of cpu is not a quantity"},
  }));
  Result<JsonObject> resources = parse_daemon_resources(row.text);
  REQUIRE_FALSE(resources);
  CHECK_THAT(resources.error().text(), Catch::Contains(row.says));
}

TEST_CASE("what the server adds to a DaemonSet is no difference", "[controller][daemon_set]") {
  Json stored = made();
  merge_patch(
      stored,
      {{"spec",
        {{"template",
          {{"metadata",
            {{"annotations", {{"kubectl.kubernetes.io/restartedAt", "2026-01-02T03:04:05Z"}}}}},
           {"spec",
            {{"schedulerName", "default-scheduler"},
             {"restartPolicy", "Always"},
             {"terminationGracePeriodSeconds", 30},
             {"securityContext", JsonObject{}},
             {"hostNetwork", false},
             {"serviceAccount", "compute-domain-daemon-service-account"}}}}}}}});
  JsonObject& container =
      stored.at("spec").at("template").at("spec").at("containers").at(0).get_object();
  container["imagePullPolicy"] = "IfNotPresent";
  container["terminationMessagePath"] = "/dev/termination-log";
  container["env"].at(3).at("valueFrom").at("fieldRef").get_object()["apiVersion"] = "v1";
  CHECK(fit(k8s::Object(stored), made()) == Fit::same);
}

TEST_CASE("what somebody added to a DaemonSet is told", "[controller][daemon_set]") {
  struct Row {
    const char* pod;        // merged into the pod's spec
    const char* container;  // … into its container
    const char* named;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"hostNetwork":true})", "{}", "hostNetwork"},
      {R"({"hostPID":true})", "{}", "hostPID"},
      {R"({"volumes":[{"name":"v","hostPath":{"path":"/"}}]})", "{}", "volumes"},
      {R"({"initContainers":[{"name":"i"}]})", "{}", "initContainers"},
      {R"({"imagePullSecrets":[{"name":"other"}]})", "{}", "imagePullSecrets"},
      {R"({"priorityClassName":"other"})", "{}", "priorityClassName"},
      {R"({"securityContext":{"runAsUser":0}})", "{}", "securityContext"},
      {"{}", R"({"securityContext":{"privileged":true}})", "securityContext"},
      {"{}", R"({"volumeMounts":[{"name":"v","mountPath":"/v"}]})", "volumeMounts"},
      {"{}", R"({"envFrom":[{"configMapRef":{"name":"m"}}]})", "envFrom"},
      {"{}", R"({"resources":{"limits":{"memory":"1Gi"}}})", "resources"},
  }));
  CAPTURE(row.named);
  const DaemonShape plain{.space = "driver", .image = "driver:1"};
  Json edited = made(plain);
  Json& pod = edited.at("spec").at("template").at("spec");
  merge_patch(pod, *parse_json(row.pod));
  merge_patch(pod.at("containers").at(0), *parse_json(row.container));
  CHECK(fit(k8s::Object(edited), made(plain)) == Fit::edited);
  CHECK(differences(k8s::Object(edited), made(plain)) == row.named);

  SECTION("but not of the original driver's, which nobody can ask for its settings") {
    edited.at("metadata").get_object().erase("annotations");
    CHECK(fit(k8s::Object(edited), made(plain)) == Fit::same);
  }
}

TEST_CASE("a second container in a DaemonSet is told", "[controller][daemon_set]") {
  Json edited = made();
  edited.at("spec")
      .at("template")
      .at("spec")
      .at("containers")
      .get_array()
      .push_back({{"name", "more"}});
  CHECK(fit(k8s::Object(edited), made()) == Fit::edited);
  CHECK(differences(k8s::Object(edited), made()) == "containers");
}

TEST_CASE("settings that were taken away make a DaemonSet outdated", "[controller][daemon_set]") {
  DaemonShape more = shape;
  more.resources = *parse_daemon_resources(R"({"limits":{"cpu":"1","memory":"1Gi"}})");
  DaemonShape less = more;
  std::string gone;
  SECTION("pull secrets") {
    less.pull_secrets.clear();
    gone = "imagePullSecrets";
  }
  SECTION("priority class") {
    less.priority_class.clear();
    gone = "priorityClassName";
  }
  SECTION("all limits") {
    less.resources.clear();
    gone = "resources";
  }
  SECTION("one limit") {
    less.resources["limits"].get_object().erase("cpu");
    gone = "resources";
  }
  CHECK(fit(k8s::Object(made(more)), made(less)) == Fit::outdated);
  CHECK(differences(k8s::Object(made(more)), made(less)) == gone);
}

TEST_CASE("a quantity is the same however it is spelled", "[controller][daemon_set]") {
  struct Row {
    const char* asked;
    const char* stored;
    bool same;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"limits":{"cpu":1}})", R"({"limits":{"cpu":"1"}})", true},
      {R"({"limits":{"cpu":"0.5"}})", R"({"limits":{"cpu":"500m"}})", true},
      {R"({"limits":{"cpu":"1000m"}})", R"({"limits":{"cpu":"1"}})", true},
      {R"({"limits":{"memory":"1024Mi"}})", R"({"limits":{"memory":"1Gi"}})", true},
      {R"({"limits":{"memory":"2e3"}})", R"({"limits":{"memory":"2k"}})", true},
      {R"({"requests":{"memory":1000000}})", R"({"requests":{"memory":"1M"}})", true},
      {R"({"limits":{"memory":"1G"}})", R"({"limits":{"memory":"1Gi"}})", false},
      {R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"1k"}})", false},
      {R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"1 "}})", false},
      {R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"1K"}})", false},
  }));
  CAPTURE(row.asked, row.stored);
  DaemonShape asked = shape;
  asked.resources = *parse_daemon_resources(row.asked);
  Json stored = made(asked);
  merge_patch(stored.at("spec").at("template").at("spec").at("containers").at(0),
              {{"resources", *parse_json(row.stored)}});
  CHECK(fit(k8s::Object(stored), made(asked)) == (row.same ? Fit::same : Fit::edited));
}

TEST_CASE("outdated is told from edited, and the difference is named", "[controller][daemon_set]") {
  DaemonShape newer = shape;
  newer.image = "driver:2";
  newer.gates = "AllAlpha=true,";
  k8s::Object stored(made());
  CHECK(fit(stored, made(newer)) == Fit::outdated);
  CHECK(differences(stored, made(newer)) == "image, FEATURE_GATES");

  Json edited = made();
  JsonObject& container =
      edited.at("spec").at("template").at("spec").at("containers").at(0).get_object();
  container["env"].get_array().push_back({{"name", "FOO"}, {"value", "bar"}});
  CHECK(fit(k8s::Object(edited), made()) == Fit::edited);
  CHECK(differences(k8s::Object(edited), made()) == "FOO");
}

TEST_CASE("rolling out replaces the pod template and remembers what was written",
          "[controller][daemon_set]") {
  DaemonShape newer = shape;
  newer.image = "driver:2";
  Json stored = made();
  stored.at("metadata").get_object().erase("annotations");  // of another version of the driver
  stored.at("metadata").get_object()["resourceVersion"] = "7";
  Json patch = roll_out_patch(k8s::Object(stored), made(newer));
  CHECK(to_text(patch.at(0)) == R"({"op":"test","path":"/metadata/resourceVersion","value":"7"})");
  CHECK(to_text(patch.at(1)) == R"({"op":"add","path":"/metadata/annotations","value":{}})");
  CHECK(patch.at(3).at("value") == made(newer).at("spec").at("template"));
}

TEST_CASE("of pods, nodes and foreign templates the caches keep a small part",
          "[controller][daemon_set]") {
  Json label = {{domain_label, uid}};
  Json bulk = JsonArray{JsonObject{{"manager", "kubelet"}}};
  Json metadata = {{"name", "x"}, {"labels", label}, {"managedFields", bulk}};
  Json node = trim_node({{"metadata", metadata}, {"status", {{"images", bulk}}}});
  CHECK(to_text(node).find("kubelet") == std::string::npos);
  CHECK(k8s::Object(node).label(domain_label));
  Json pod = trim_pod({{"metadata", metadata}, {"spec", {{"volumes", bulk}}}});
  CHECK(to_text(pod).find("kubelet") == std::string::npos);
  Json foreign = trim_template({{"metadata", {{"name", "t"}}}, {"spec", {{"spec", bulk}}}});
  CHECK(to_text(foreign) == R"({"metadata":{"name":"t"}})");
}
