// The pure parts of pods: environment, probes, addresses, files.
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "sandbox/pod_environment.hpp"
#include "sandbox/pod_files.hpp"
#include "sandbox/pod_mirror.hpp"
#include "sandbox/pod_network.hpp"
#include "sandbox/pod_probes.hpp"

#include <fcntl.h>

#include <filesystem>
#include <set>

namespace nvdra::sandbox {
namespace {

using Words = std::vector<std::string>;
using Verdict = ProbeCount::Verdict;

Json json(std::string text) {
  for (char& c : text)
    if (c == '\'') c = '"';
  return boost::json::parse(text);
}

TEST_CASE("$(NAME) is replaced where the name is known, and $$ is a dollar", "[sandbox][pod]") {
  const KnownVariables known = {{"V", "4"}, {"EMPTY", ""}};
  struct Row {
    const char* text;
    const char* expanded;
  };
  for (const Row& row : std::vector<Row>{{"-v $(V) run", "-v 4 run"},
                                         {"$(OTHER) $(EMPTY)|", "$(OTHER) |"},
                                         {"$$(V)", "$(V)"},
                                         {"$V ${V} $(V", "$V ${V} $(V"},
                                         {"cost: 5$", "cost: 5$"}})
    CHECK(expand(row.text, known) == row.expanded);
}

TEST_CASE("a container's environment has literals and fields of its pod", "[sandbox][pod]") {
  const Json pod = json(
      "{'metadata': {'name': 'p', 'namespace': 'n', 'uid': 'u', 'labels': {'a/b': 'x'}},"
      " 'spec': {'nodeName': 'node-1'}}");
  const auto value = [&](std::string_view field) {
    const Json container = JsonObject{
        {"env", JsonArray{JsonObject{
                    {"name", "F"},
                    {"valueFrom", JsonObject{{"fieldRef", JsonObject{{"fieldPath", field}}}}}}}}};
    const auto made = environment_of(pod, container, {"10.244.1.2", "127.0.0.1"});
    return made ? made->at(0) : made.error().text();
  };
  CHECK(value("metadata.name") == "F=p");
  CHECK(value("metadata.namespace") == "F=n");
  CHECK(value("metadata.uid") == "F=u");
  CHECK(value("metadata.labels['a/b']") == "F=x");
  CHECK(value("metadata.labels['none']") == "F=");
  CHECK(value("spec.nodeName") == "F=node-1");
  CHECK(value("status.podIP") == "F=10.244.1.2");
  CHECK(value("status.hostIP") == "F=127.0.0.1");
  CHECK(value("spec.unknown").find("env F") != std::string::npos);

  const Json literals = json(
      "{'env': [{'name': 'A', 'value': '1'}, {'name': 'B', 'value': '$(A)-$(LATER)'},"
      " {'name': 'LATER', 'value': 'x'}]}");
  const auto environment = environment_of(pod, literals, {});
  REQUIRE(environment);
  CHECK(*environment == Words{"A=1", "B=1-$(LATER)", "LATER=x"});
}

TEST_CASE("probes have the defaults of Kubernetes, and know literal variables only",
          "[sandbox][pod]") {
  const Json container = json(
      "{'env': [{'name': 'V', 'value': '4'}, {'name': 'F', 'valueFrom': {}}],"
      " 'livenessProbe': {'exec': {'command': ['c', '-v', '$(V)', '$(F)']}},"
      " 'startupProbe': {'exec': {'command': ['s']}, 'periodSeconds': 1, 'timeoutSeconds': 10,"
      "                  'failureThreshold': 1200, 'initialDelaySeconds': 0}}");
  const std::vector<Probe> probes = probes_of(container);
  REQUIRE(probes.size() == 2);
  CHECK(probes[0].kind == ProbeKind::startup);
  CHECK(probes[0].period == 1s);
  CHECK(probes[0].timeout == 10s);
  CHECK(probes[0].failures == 1200);
  CHECK(probes[1].kind == ProbeKind::liveness);
  CHECK(probes[1].command == Words{"c", "-v", "4", "$(F)"});
  CHECK(probes[1].period == 10s);
  CHECK(probes[1].timeout == 1s);
  CHECK(probes[1].failures == 3);
  CHECK(probes[1].successes == 1);
  CHECK_FALSE(has_probe(container, ProbeKind::readiness));
}

TEST_CASE("a probe's verdict needs its threshold of equal answers in a row", "[sandbox][pod]") {
  ProbeCount count({.kind = ProbeKind::liveness, .command = {}, .failures = 3, .successes = 1});
  CHECK(count.after(false) == Verdict::undecided);
  CHECK(count.after(false) == Verdict::undecided);
  CHECK(count.after(true) == Verdict::good);
  CHECK(count.after(false) == Verdict::undecided);
  CHECK(count.after(false) == Verdict::undecided);
  CHECK(count.after(false) == Verdict::bad);

  ProbeCount twice({.kind = ProbeKind::readiness, .command = {}, .failures = 1, .successes = 2});
  CHECK(twice.after(false) == Verdict::bad);
  CHECK(twice.after(true) == Verdict::undecided);
  CHECK(twice.after(true) == Verdict::good);
}

TEST_CASE("a pod's address is used again as late as possible", "[sandbox][pod]") {
  PodAddresses addresses("10.244.3.", 250);
  CHECK(addresses.take() == "10.244.3.250");
  addresses.give_back("10.244.3.250");
  CHECK(addresses.take() == "10.244.3.251");
  for (const char* next : {"10.244.3.252", "10.244.3.253", "10.244.3.254", "10.244.3.250"})
    CHECK(addresses.take() == next);
  CHECK_FALSE(addresses.take());
  addresses.give_back("10.244.3.252");
  CHECK(addresses.take() == "10.244.3.252");
}

TEST_CASE("a pod's hosts file is a kubelet's", "[sandbox][pod]") {
  const std::string text = hosts_text("10.244.1.2", "p");
  CHECK(text.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"));
  CHECK(text.ends_with("\n10.244.1.2\tp\n"));
}

TEST_CASE("a pod's resolver file has the options of its dnsConfig", "[sandbox][pod]") {
  CHECK(resolver_text(json("{'metadata': {'namespace': 'n'}}")) ==
        "search n.svc.cluster.local svc.cluster.local cluster.local\n"
        "nameserver 10.96.0.10\noptions ndots:5\n");
  const std::string text =
      resolver_text(json("{'metadata': {'namespace': 'n'}, 'spec': {'dnsConfig': {'options': "
                         "[{'name': 'ndots', 'value': '1'}, {'name': 'edns0'}]}}}"));
  CHECK(text.ends_with("options ndots:1 edns0\n"));
}

TEST_CASE("a pod's files are written in place, so that a mounted one follows", "[sandbox][pod]") {
  fake::TempDir folder;
  const Json pod = json("{'metadata': {'name': 'p', 'namespace': 'n', 'uid': 'u'}}");
  REQUIRE(put_pod_files(folder.path("f"), pod, "10.244.1.2", {}));
  const Fd mounted(::open(folder.path("f/hosts").c_str(), O_RDONLY));
  REQUIRE(put_pod_files(folder.path("f"), pod, "10.244.1.3", {}));
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(::read(mounted.get(), text.data(), text.size())));
  CHECK(text.ends_with("10.244.1.3\tp\n"));
}

TEST_CASE("a pod finds the API server by its service account, unless it does not want to",
          "[sandbox][pod]") {
  fake::TempDir folder;
  const PodApi api{"10.96.0.1", 443, "PEM"};
  const auto targets = [&](const std::string& spec) {
    const Json pod = json("{'metadata': {'name': 'p', 'namespace': 'n'}, 'spec': " + spec + "}");
    std::set<std::string> found;
    const auto mounts = put_pod_files(folder.path("f"), pod, "10.244.1.2", api);
    REQUIRE(mounts);
    for (const cdi::Mount& mount : *mounts) found.insert(mount.container_path);
    return found;
  };
  const char* account = "/var/run/secrets/kubernetes.io/serviceaccount";
  CHECK(targets("{}").contains(account));
  CHECK_FALSE(targets("{'automountServiceAccountToken': false}").contains(account));
  CHECK_FALSE(targets("{'hostNetwork': true}").contains("/etc/hosts"));
  CHECK(api_environment(api).at(0) == "KUBERNETES_SERVICE_HOST=10.96.0.1");
  CHECK(api_environment({}).empty());
}

TEST_CASE("a container has the volumes that it mounts, and others are refused by name",
          "[sandbox][pod]") {
  fake::TempDir folder;
  const Json pod = json(
      "{'spec': {'volumes': [{'name': 'e', 'emptyDir': {}}, {'name': 'c', 'configMap': {}},"
      " {'name': 'h', 'hostPath': {'path': '/etc'}}]}}");
  const auto mounts = put_volumes(folder.path("v"), pod,
                                  json("{'volumeMounts': [{'name': 'e', 'mountPath': '/data'},"
                                       " {'name': 'h', 'mountPath': '/host', 'readOnly': true}]}"));
  REQUIRE(mounts);
  CHECK(*mounts ==
        std::vector<cdi::Mount>{{folder.path("v/e"), "/data", {"rw"}}, {"/etc", "/host", {"ro"}}});
  CHECK(std::filesystem::is_directory(folder.path("v/e")));
  const auto refused = put_volumes(folder.path("v"), pod,
                                   json("{'volumeMounts': [{'name': 'c', 'mountPath': '/c'}]}"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "volume c: the sandbox has emptyDir and hostPath only");
}

TEST_CASE("a mount's target is where links between folders lead", "[sandbox][pod]") {
  fake::TempDir folder;
  std::filesystem::create_directories(folder.path("usr/lib"));
  std::filesystem::create_symlink("usr/lib", folder.path("lib"));
  const std::string real = std::filesystem::canonical(folder.path());
  CHECK(real_target(folder.path("lib/new/file")) == real + "/usr/lib/new/file");
  std::filesystem::create_symlink("elsewhere", folder.path("usr/lib/file"));
  CHECK(real_target(folder.path("lib/file")) == real + "/usr/lib/file");
}

}  // namespace
}  // namespace nvdra::sandbox
