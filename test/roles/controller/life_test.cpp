// Domains from their creation to their end, against the sandbox's API server.
#include "roles/controller/life.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

Member entry(std::string node, std::int64_t index, bool ready) {
  return {NodeName(node), "10.0.0.1", CliqueId("11111111-2222-3333-4444-555555555555.1"), index,
          ready};
}

std::string daemon_name(const std::string& uid) {
  return daemon_object_name(DomainUid(uid));
}

}  // namespace

TEST_CASE("a domain is formed with six requests", "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  CHECK(life.find("daemonsets", "driver", daemon_name(uid)));
  CHECK(life.find("resourceclaimtemplates", "driver", daemon_name(uid)));
  CHECK(life.find("resourceclaimtemplates", "default", "t-a"));
  life.until("told", [&] { return life.count("events") == 1; });
  // Finalizer, three objects, status, Event.
  CHECK(life.requests() == 6);
}

TEST_CASE("status follows the members from the node's label to Ready", "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a", 1);
  life.until("formed", [&] { return life.state("a") == "NotReady WaitingForNodes"; });
  life.label_node("n1", uid.c_str());
  life.until("expected", [&] { return life.state("a") == "NotReady WaitingForDaemons"; });
  life.run_daemon(uid, "n1");
  life.set_clique(uid, {entry("n1", 0, false)});
  life.until("joined", [&] { return array_or_empty(life.status("a"), "nodes").size() == 1; });
  CHECK(life.state("a") == "NotReady WaitingForDaemons");

  std::uint64_t before = life.requests();
  Instant since = Clock::now();
  life.set_clique(uid, {entry("n1", 0, true)});
  life.until("ready", [&] { return life.state("a") == "Ready DaemonsReady"; });
  CHECK(Clock::now() - since < 1s);
  CHECK(text_or_empty(life.status("a"), "nodeSummary") == "1/1");
  CHECK(life.requests() - before <= 2);

  SECTION("the member leaves with its node: the key `nodes` disappears") {
    life.set_clique(uid, {});
    life.remove("pods", {"driver", "d-n1"});
    life.label_node("n1", nullptr);
    life.until("left", [&] { return life.state("a") == "NotReady WaitingForNodes"; });
    CHECK(nvdra::find(life.status("a"), "nodes") == nullptr);
  }
  SECTION("a member whose pod vanished is removed after one live list, and only then") {
    life.server->reset_counts();
    life.set_clique(uid, {entry("n1", 0, true), entry("gone", 1, true)});
    auto entries = [&] {
      auto clique = life.find("computedomaincliques", "driver", uid + "." + life.clique_id);
      return array_or_empty(clique->json(), "daemons").size();
    };
    life.until("pruned", [&] { return entries() == 1; });
    CHECK(life.server->count("list", "pods") + life.server->count("LIST", "pods") == 1);
    CHECK(life.state("a") == "Ready DaemonsReady");
  }
}

TEST_CASE("objects, labels of all nodes, and the domain go at once", "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  for (int i = 0; i < 40; ++i) life.label_node(fmt::format("n{}", i), uid.c_str());
  life.until("expected", [&] { return life.state("a") == "NotReady WaitingForDaemons"; });
  life.label_node("n7", life.create_domain("other").c_str());
  life.remove("computedomains", {"default", "a"});
  life.until("gone", [&] { return !life.find("computedomains", "default", "a"); });
  CHECK_FALSE(life.find("daemonsets", "driver", daemon_name(uid)));
  CHECK_FALSE(life.find("resourceclaimtemplates", "driver", daemon_name(uid)));
  CHECK_FALSE(life.find("resourceclaimtemplates", "default", "t-a"));
  for (int i = 0; i < 40; ++i) {
    auto node = life.find("nodes", "", fmt::format("n{}", i));
    const JsonObject& labels = object_or_empty(node->json(), "metadata/labels");
    CAPTURE(i);
    CHECK(labels.contains(domain_label) == (i == 7));
  }
}

TEST_CASE("a deletion interrupted anywhere is finished by the next controller (W-C3, W-C6)",
          "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  life.stop();
  const std::string lost = GENERATE("nothing", "daemonsets", "resourceclaimtemplates");
  CAPTURE(lost);
  life.remove("computedomains", {"default", "a"});
  if (lost != "nothing") {
    life.remove(lost, {"driver", daemon_name(uid)});
    life.change(lost, {"driver", daemon_name(uid)}, {{"metadata", {{"finalizers", nullptr}}}});
    REQUIRE_FALSE(life.find(lost, "driver", daemon_name(uid)));
  }
  life.start();
  life.until("gone", [&] { return !life.find("computedomains", "default", "a"); });
  CHECK(life.count("daemonsets") + life.count("resourceclaimtemplates") == 0);
}

TEST_CASE("objects and labels whose domain vanished while nobody looked are removed",
          "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  life.stop();
  life.remove("computedomains", {"default", "a"});
  life.change("computedomains", {"default", "a"}, {{"metadata", {{"finalizers", nullptr}}}});
  life.label_node("n1", uid.c_str());
  REQUIRE(life.count("computedomains") == 0);
  life.start();
  life.until("gone", [&] {
    auto node = life.find("nodes", "", "n1");
    return life.count("daemonsets") + life.count("resourceclaimtemplates") == 0 &&
           !object_or_empty(node->json(), "metadata/labels").contains(domain_label);
  });
}

TEST_CASE("the second domain of one template gets nothing until the name is free (W-C8)",
          "[controller][life]") {
  Life life;
  life.start();
  life.make("resourceclaimtemplates", "default",
            {{"metadata", {{"name", "t-a"}}}, {"spec", {{"spec", {{"devices", JsonObject{}}}}}}});
  life.create_domain("a");
  life.until("told", [&] { return life.state("a") == "NotReady TemplateNameTaken"; });
  CHECK(life.count("daemonsets") == 0);
  CHECK(life.count("resourceclaimtemplates") == 1);
  life.remove("resourceclaimtemplates", {"default", "t-a"});
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
}

TEST_CASE("a DaemonSet that a user deletes comes back", "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  auto own = [&] {
    auto found = life.find("daemonsets", "driver", daemon_name(uid));
    return found ? std::string(text_or_empty(found->json(), "metadata/uid")) : "";
  };
  std::string before = own();
  life.remove("daemonsets", {"driver", daemon_name(uid)});
  life.until("again", [&] { return !own().empty() && own() != before; });
}

TEST_CASE("a DaemonSet that lost its label gets it back, without many requests",
          "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  std::uint64_t before = life.requests();
  life.change("daemonsets", {"driver", daemon_name(uid)},
              {{"metadata", {{"labels", {{domain_label, nullptr}}}}}});
  life.until("labelled again", [&] {
    auto item = life.find("daemonsets", "driver", daemon_name(uid));
    const k8s::Object object(item->json());
    const Json* label = object.label(domain_label);
    return label && *label == Json(uid);
  });
  // A creation that fails, a look, a patch; its Event and status may follow.
  CHECK(life.requests() - before <= 5);
}

TEST_CASE("a change of mode with domains present is refused, or cleaned up when told (W-C19)",
          "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a");
  life.label_node("n1", uid.c_str());
  life.run_daemon(uid, "n1");
  life.set_clique(uid, {entry("n1", 0, true)});
  life.until("ready", [&] { return life.state("a") == "Ready DaemonsReady"; });
  life.stop();

  life.settings().mode = ImexMode::host_managed;
  fake::CapturedLog log({.verbosity = 0});
  life.start();
  life.until("refused", [&] { return life.state("a") == "NotReady LeftoversOfDriverManaged"; });
  CHECK(life.count("daemonsets") == 1);
  CHECK(log.count("left behind of 1 ComputeDomain(s): default/a (ResourceClaimTemplate driver/") ==
        1);
  life.until("told the user", [&] { return life.events("LeftoversOfDriverManaged") > 0; });
  life.stop();

  life.settings().clean_up_other_mode = true;
  life.start();
  life.until("admitted", [&] { return life.state("a") == "Ready Admitted"; });
  CHECK(life.count("daemonsets") == 0);
  CHECK(life.count("resourceclaimtemplates") == 1);
  CHECK(nvdra::find(life.status("a"), "nodes") == nullptr);
  auto node = life.find("nodes", "", "n1");
  CHECK_FALSE(object_or_empty(node->json(), "metadata/labels").contains(domain_label));
}

TEST_CASE("templates of the other mode are made again, and each domain is told (W-C19)",
          "[controller][life]") {
  Settings settings = Life::managed();
  settings.mode = ImexMode::host_managed;
  Life life(settings);
  life.start();
  life.create_domain("a", 0, "All");
  life.until("admitted", [&] { return life.state("a") == "Ready Admitted"; });
  life.stop();

  life.settings().mode = ImexMode::driver_managed;
  fake::CapturedLog log({.verbosity = 0});
  life.start();
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  life.until("told the user", [&] { return life.events("TemplateOfOtherMode") == 1; });
  CHECK(
      log.count("Mode driverManaged makes the workload templates that hostManaged made again, of 1 "
                "ComputeDomain(s): default/a;") == 1);
}

TEST_CASE("clean-up is logged from level 6 on, domains worked on from level 2 on (AT-B7)",
          "[controller][life]") {
  const int level = GENERATE(0, 1, 2, 5, 6);
  CAPTURE(level);
  Life life;
  fake::CapturedLog log({.verbosity = level});
  life.start();
  life.create_domain("a");
  life.until("formed", [&] { return life.state("a") == "Ready NoDaemonsNeeded"; });
  // Each pass is told, those too that find nothing.
  CHECK(log.count("Cleanup: perform for 0 ComputeDomains") == (level >= 6 ? 1 : 0));
  CHECK(log.has("Processing added or updated ComputeDomain: default/a") == (level >= 2));
  life.remove("computedomains", {"default", "a"});
  life.until("gone", [&] { return life.count("computedomains") == 0; });
  if (level >= 6)
    life.until("cleaned", [&] { return log.has("Cleanup: perform for 0 objects of"); });
  life.stop();
  CHECK(log.has("Cleanup: perform for") == (level >= 6));
}

TEST_CASE("a right that is missing is named by readiness and log, until it is given (W-C12)",
          "[controller][life]") {
  Life life;
  const std::string message =
      "daemonsets.apps is forbidden: User \"controller\" cannot list resource \"daemonsets\" in "
      "API "
      "group \"apps\" in the namespace \"driver\"";
  REQUIRE(life.server->faults().add({{"match", {{"verb", "list"}, {"resource", "daemonsets"}}},
                                     {"count", 2},
                                     {"status", 403},
                                     {"reason", "Forbidden"},
                                     {"message", message}}));
  fake::CapturedLog log({.verbosity = 0});
  life.begin();
  life.until("told", [&] { return log.has("cannot list resource"); });
  CHECK_THAT(life.readiness().body,
             Catch::StartsWith("not ready, and no ComputeDomain is worked on until this is cured:\n"
                               "list daemonsets in driver: " +
                               message));
  CHECK(life.readiness().status == 503);
  life.until("ready", [&] { return life.readiness().status == 200; });
}

TEST_CASE("a daemon's own entry survives the controller's writes (reports 40)",
          "[controller][life]") {
  Life life;
  life.start();
  std::string uid = life.create_domain("a", 2);
  life.until("formed", [&] { return life.state("a") == "NotReady WaitingForNodes"; });
  life.label_node("n1", uid.c_str());
  life.run_daemon(uid, "n1", "ComputeDomainCliques=false,");
  Json entries = JsonArray{member_entry(entry("n1", 0, true), MemberList::domain_nodes)};
  life.change("computedomains", {"default", "a"}, {{"status", {{"nodes", entries}}}}, "status");
  life.until("counted", [&] { return text_or_empty(life.status("a"), "nodeSummary") == "1/1"; });
  CHECK(life.status("a").at("nodes") == entries);
}

TEST_CASE("a hundred domains at once cost the same each, and leave together",
          "[controller][life]") {
  Life life;
  life.start();
  for (int i = 0; i < 100; ++i) life.create_domain(fmt::format("d{}", i));
  life.until("formed", [&] {
    for (int i = 0; i < 100; ++i)
      if (life.state(fmt::format("d{}", i)) != "Ready NoDaemonsNeeded") return false;
    return true;
  });
  life.until("told", [&] { return life.count("events") == 100; });
  CHECK(life.requests() == 600);
  life.server->reset_counts();
  for (int i = 0; i < 100; ++i) life.remove("computedomains", {"default", fmt::format("d{}", i)});
  life.until("gone", [&] { return life.count("computedomains") == 0; });
  CHECK(life.count("daemonsets") + life.count("resourceclaimtemplates") == 0);
  INFO(life.asked());
  // Three deletions, three finalizers of objects, one of the domain.
  CHECK(life.requests() == 700);
}
