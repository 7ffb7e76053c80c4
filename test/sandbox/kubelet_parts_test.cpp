// The pure parts of kubelets and demonstrations.
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "sandbox/crd_yaml.hpp"
#include "sandbox/demo_kubectl.hpp"
#include "sandbox/demo_manifests.hpp"
#include "sandbox/demo_print.hpp"
#include "sandbox/demo_words.hpp"
#include "sandbox/pod_cdi.hpp"
#include "sandbox/pod_inside.hpp"
#include "sandbox/pod_status.hpp"

namespace nvdra::sandbox {
namespace {

using Kind = ContainerState::Kind;
using Words = std::vector<std::string>;

PodReport report(std::initializer_list<ContainerState> states) {
  return {.address = "127.0.0.1",
          .host = "127.0.0.1",
          .now = "2026-01-01T00:00:00Z",
          .started = "2026-01-01T00:00:00Z",
          .sandbox = true,
          .containers = states};
}

ContainerState state(Kind kind, int exit_code = 0, int restart_count = 0) {
  ContainerState one;
  one.kind = kind;
  one.has_started = one.ready = kind == Kind::running;
  one.exit_code = exit_code;
  one.restarts = restart_count;
  return one;
}

TEST_CASE("the phase of a pod follows from its containers and its restart policy",
          "[sandbox][kubelet]") {
  struct Row {
    const char* why;
    PodReport pod;
    const char* policy;
    const char* phase;
  };
  const std::vector<Row> rows = {
      {"nothing has started", report({state(Kind::waiting)}), "Always", "Pending"},
      {"one runs", report({state(Kind::running), state(Kind::terminated)}), "Never", "Running"},
      {"ended well for good", report({state(Kind::terminated)}), "Never", "Succeeded"},
      {"ended badly for good", report({state(Kind::terminated, 1)}), "Never", "Failed"},
      {"one of two was bad", report({state(Kind::terminated), state(Kind::terminated, 2)}), "Never",
       "Failed"},
      {"will be restarted", report({state(Kind::terminated)}), "Always", "Running"},
      {"success is enough", report({state(Kind::terminated)}), "OnFailure", "Succeeded"},
      {"waits for its restart", report({state(Kind::waiting, 0, 1)}), "Always", "Running"},
  };
  for (const Row& row : rows) {
    INFO(row.why);
    CHECK(pod_phase(row.pod, row.policy) == row.phase);
  }
}

TEST_CASE("a status keeps what others have written into it", "[sandbox][kubelet]") {
  const Json pod = JsonObject{
      {"spec", JsonObject{{"restartPolicy", "Always"}}},
      {"status",
       JsonObject{{"resourceClaimStatuses", JsonArray{"kept"}},
                  {"conditions", JsonArray{JsonObject{{"type", "Other"}, {"status", "True"}}}}}}};
  const Json after = with_status(pod, report({state(Kind::running)}));
  CHECK(array_or_empty(after, "status/resourceClaimStatuses").size() == 1);
  CHECK(text_or_empty(array_or_empty(after, "status/conditions").at(0), "type") == "Other");
  CHECK(text_or_empty(after, "status/phase") == "Running");
  CHECK(text_or_empty(after, "status/podIP") == "127.0.0.1");
}

TEST_CASE("CDI devices are found in whichever file has them, and missing ones are named",
          "[sandbox][kubelet]") {
  fake::TempDir cdi;
  cdi.write("a.yaml",
            "cdiVersion: 0.5.0\nkind: v.io/claim\ncontainerEdits:\n  env: [FROM_FILE=1]\n"
            "devices:\n- name: x\n  containerEdits:\n    deviceNodes:\n"
            "    - path: /dev/x\n      type: c\n      major: 236\n");
  cdi.write("b.yaml",
            "cdiVersion: 0.5.0\nkind: v.io/claim\ndevices:\n- name: y\n  containerEdits:\n    env: "
            "[Y=1]\n");
  cdi.write(".draft", "{");
  const auto edits = cdi_edits(cdi.path(), {"v.io/claim=x", "v.io/claim=y"});
  REQUIRE(edits);
  CHECK(edits->device_nodes.at(0).path == "/dev/x");
  CHECK(edits->env == Words{"FROM_FILE=1", "Y=1"});
  const auto missing = cdi_edits(cdi.path(), {"v.io/claim=x", "v.io/claim=z"});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text() ==
        "CDI device injection failed: unresolvable CDI devices v.io/claim=z");
}

TEST_CASE("a container's description survives the way to its process", "[sandbox][kubelet]") {
  ContainerSpec spec{.command = {"sh", "-c", "echo \"x\"\n"}, .environment = {"A=b c"}};
  spec.host_name = "pod";
  spec.edits.device_nodes = {{.path = "/dev/x", .major = 236, .minor = 5, .file_mode = 0640}};
  spec.edits.mounts = {{"/from", "/to", {"ro"}}};
  const auto back = container_spec(spec_text(spec));
  REQUIRE(back);
  CHECK(back->command == spec.command);
  CHECK(back->environment == spec.environment);
  CHECK(back->edits.device_nodes == spec.edits.device_nodes);
  CHECK(back->edits.mounts == spec.edits.mounts);
  CHECK_FALSE(container_spec("{}"));
}

TEST_CASE("a command line is read as a shell reads it", "[sandbox][demo]") {
  const Variables variables = {{"CD_UID", "u-1"}};
  CHECK(shell_words("kubectl get x -l \"a=${CD_UID},b\"  --all", variables) ==
        Words{"kubectl", "get", "x", "-l", "a=u-1,b", "--all"});
  CHECK(shell_words("a -o jsonpath='{.metadata.uid}' '${CD_UID}'", variables) ==
        Words{"a", "-o", "jsonpath={.metadata.uid}", "${CD_UID}"});
  CHECK(shell_words("a \\\n   b \"\" ${NONE}", variables) == Words{"a", "b", "", ""});
}

TEST_CASE("kubectl's flags are taken in all their spellings, unknown ones refused",
          "[sandbox][demo]") {
  const auto taken =
      kubectl_arguments({"exec", "p", "-n", "x", "--for=a=b", "-A", "--", "ls", "-l"});
  REQUIRE(taken);
  CHECK(taken->words == Words{"exec", "p"});
  CHECK(taken->flag("namespace") == "x");
  CHECK(taken->flag("for") == "a=b");
  CHECK(taken->flag("all-namespaces") == "true");
  CHECK(taken->command == Words{"ls", "-l"});
  CHECK_FALSE(kubectl_arguments({"get", "--nonsense"}));
}

TEST_CASE("a field is printed by its path", "[sandbox][demo]") {
  const Json object = JsonObject{{"metadata", JsonObject{{"uid", "u"}, {"n", 3}}}};
  CHECK(print_path(object, "{.metadata.uid}") == "u");
  CHECK(print_path(object, "{.metadata.n}") == "3");
  CHECK(print_path(object, "{.metadata.none}").empty());
  CHECK(print_rows({{"A", "B"}, {"long", "x"}}, "") == "A      B\nlong   x\n");
}

TEST_CASE("the workload for one node has the guide's further expression", "[sandbox][demo]") {
  const auto documents = parse_yaml(workload_on("node-2"));
  REQUIRE(documents);
  const Json& terms = *find(documents->at(0),
                            "spec/affinity/nodeAffinity/"
                            "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  const JsonArray& expressions = array_or_empty(terms.get_array().at(0), "matchExpressions");
  REQUIRE(expressions.size() == 2);
  CHECK(text_or_empty(expressions[0], "key") == "nvidia.com/gpu.clique");
  CHECK(text_or_empty(expressions[1], "key") == "kubernetes.io/hostname");
  CHECK(array_or_empty(expressions[1], "values").at(0) == Json("node-2"));
}

}  // namespace
}  // namespace nvdra::sandbox
