// Plans of mode driverManaged.
#include "catch.hpp"
#include "roles/controller/members.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

const Settings managed{
    .mode = ImexMode::driver_managed,
    .resource_version = "v1",
    .daemons = {.space = "driver", .image = "driver:1", .verbosity = 4, .gates = gates_on},
    .spaces = {"driver", "further"}};
const std::string daemon_name = "computedomain-daemon-" + uid;
const std::string daemon_place = "driver/" + daemon_name;

k8s::ObjectPtr stored(Json json, std::string own, std::string version = "20") {
  json.at("metadata").get_object()["uid"] = own;
  json.at("metadata").get_object()["resourceVersion"] = version;
  return object(std::move(json));
}

k8s::ObjectPtr daemons_of(const Settings& settings = managed, std::string space = "driver") {
  return stored(daemon_set(DomainUid(uid), space, settings.daemons), "ds");
}

k8s::ObjectPtr daemon_template_of(std::string space = "driver") {
  return stored(daemon_template(DomainUid(uid), space, "v1"), "dt");
}

// A domain with all its objects and no members.
Observed formed(DomainShape shape = {}) {
  auto cd = domain(std::move(shape));
  auto workload = template_of(cd, ImexMode::driver_managed);
  return {.domain = cd,
          .occupant = workload,
          .occupant_owner = "",
          .templates = {workload, daemon_template_of()},
          .daemon_sets = {daemons_of()}};
}

Observed with_members(DomainShape shape, bool b_ready = true) {
  Observed observed = formed(std::move(shape));
  observed.cliques = {clique({entry("a", 0), entry("b", 1, b_ready)})};
  observed.pods = {pod({.node = "a"}), pod({.node = "b"})};
  observed.nodes = {node("a"), node("b")};
  return observed;
}

const Finding& finding(const Plan& plan, std::string_view type) {
  for (const Finding& each : plan.findings)
    if (each.type == type) return each;
  FAIL("no finding " << type);
  return plan.findings.front();
}

bool has(const Plan& plan, std::string_view type) {
  return std::ranges::find(plan.findings, type, &Finding::type) != plan.findings.end();
}

k8s::ObjectPtr going(const k8s::ObjectPtr& original) {
  return changed(original, {{"metadata", {{"deletionTimestamp", "2026-01-02T03:04:05Z"}}}});
}

}  // namespace

TEST_CASE("the workload template comes first, the daemons' objects once it is proven ours",
          "[controller][plan]") {
  Observed observed{domain({.with_finalizer = false}), nullptr, "", {}};
  CHECK(told(plan_domain(observed, managed).actions) ==
        "mark default/my-compute-domain; create default/imex-channel-0");
  observed = formed();
  observed.templates.pop_back();
  observed.daemon_sets.clear();
  CHECK(told(plan_domain(observed, managed).actions) ==
        "create " + daemon_place + "; create " + daemon_place);
}

TEST_CASE("while the template's name is taken no daemon object is created (W-C8)",
          "[controller][plan]") {
  auto foreign =
      object({{"metadata", {{"namespace", "default"}, {"name", "imex-channel-0"}, {"uid", "f"}}}});
  Plan plan = plan_domain({domain(), foreign, "", {}}, managed);
  CHECK(told(plan.actions).empty());
  CHECK_FALSE(plan.ready);
  CHECK(finding(plan, "Ready").reason == "TemplateNameTaken");
  CHECK(finding(plan, "DaemonsReady").reason == "TemplateNameTaken");
}

TEST_CASE("a domain that needs no nodes is Ready once its objects exist, not before (W-C4)",
          "[controller][plan]") {
  CHECK(plan_domain(formed(), managed).ready);
  CHECK(finding(plan_domain(formed(), managed), "DaemonsReady").reason == "NoDaemonsNeeded");
  Observed observed = formed();
  observed.daemon_sets.clear();
  CHECK_FALSE(plan_domain(observed, managed).ready);
}

TEST_CASE("status.status follows numNodes and the members", "[controller][plan]") {
  struct Row {
    int wanted;
    std::vector<bool> members;  // ready?
    bool ready;
    const char* reason;
  };
  const Row row = GENERATE(values<Row>({
      {0, {}, true, "NoDaemonsNeeded"},
      {1, {}, false, "WaitingForNodes"},
      {8, {}, false, "WaitingForNodes"},
      {1, {true}, true, "DaemonsReady"},
      {2, {true}, false, "WaitingForNodes"},
      {1, {true, false}, false, "WaitingForDaemons"},
      {1, {true, true}, true, "DaemonsReady"},
      {0, {false}, false, "WaitingForDaemons"},
  }));
  CAPTURE(row.wanted, row.members.size());
  Observed observed = formed({.num_nodes = row.wanted});
  std::vector<Member> members;
  for (std::size_t i = 0; i < row.members.size(); ++i) {
    std::string name(1, static_cast<char>('a' + i));
    members.push_back(entry(name, static_cast<std::int64_t>(i), row.members[i]));
    observed.pods.push_back(pod({.node = name}));
    observed.nodes.push_back(node(name));
  }
  observed.cliques = {clique(members)};
  Plan plan = plan_domain(observed, managed);
  CHECK(plan.ready == row.ready);
  CHECK(finding(plan, "Ready").reason == row.reason);
}

TEST_CASE("who is waited for, and why, stands in the condition", "[controller][plan]") {
  Plan plan = plan_domain(with_members({.num_nodes = 2}, false), managed);
  CHECK(finding(plan, "Ready").message ==
        "1 of 2 daemons are ready; waiting for b (nvidia-imex in pod driver/d-b is not READY)");
  CHECK_FALSE(finding(plan, "Ready").warning);
  CHECK(plan.node_summary == "1/2");
}

TEST_CASE("numNodes 0 with DNS names off can never work, and says so (W-F3)",
          "[controller][plan]") {
  Settings by_address = managed;
  by_address.dns_names = false;
  Plan plan = plan_domain(formed(), by_address);
  CHECK_FALSE(plan.ready);
  CHECK(finding(plan, "Ready").reason == "NumNodesRequired");
  CHECK(finding(plan, "Ready").warning);
  CHECK(plan_domain(with_members({.num_nodes = 2}), by_address).ready);
}

TEST_CASE("a domain over several NVLink cliques says so (report 62)", "[controller][plan]") {
  Observed observed = with_members({});
  CHECK_FALSE(has(plan_domain(observed, managed), "SingleClique"));
  observed.cliques = {clique({entry("a", 0)}), clique({entry("b", 0)}, clique_b)};
  observed.pods[1] = pod({.node = "b", .clique = clique_b});
  CHECK(finding(plan_domain(observed, managed), "SingleClique").reason == "SeveralCliques");
}

TEST_CASE("a member that is proven gone is taken out of its clique", "[controller][plan]") {
  Observed observed = with_members({});
  observed.pods.pop_back();
  CHECK(plan_domain(observed, managed).doubtful);
  CHECK(told(plan_domain(observed, managed).actions).empty());
  observed.live_pods = observed.pods;
  CHECK(told(plan_domain(observed, managed).actions) == "amend driver/" + uid + "." + clique_a);
}

TEST_CASE("a DaemonSet that a user deleted is let go, and made again (W-C5)",
          "[controller][plan]") {
  Observed observed = formed();
  observed.daemon_sets = {going(daemons_of())};
  CHECK(told(plan_domain(observed, managed).actions) == "release " + daemon_place);
  observed.daemon_sets.clear();
  CHECK(told(plan_domain(observed, managed).actions) == "create " + daemon_place);
}

TEST_CASE("a daemon template that is lost is made again", "[controller][plan]") {
  Observed observed = formed();
  observed.templates.pop_back();
  CHECK(told(plan_domain(observed, managed).actions) == "create " + daemon_place);
}

TEST_CASE("a DaemonSet in an additional namespace goes on serving its domain",
          "[controller][plan]") {
  Observed observed = formed();
  observed.templates[1] = daemon_template_of("further");
  observed.daemon_sets = {daemons_of(managed, "further")};
  Plan plan = plan_domain(observed, managed);
  CHECK(told(plan.actions).empty());
  CHECK(plan.ready);
}

TEST_CASE("DaemonSets of one domain in two namespaces are reported, and both go with it",
          "[controller][plan]") {
  Observed observed = formed();
  observed.daemon_sets.push_back(daemons_of(managed, "further"));
  Plan plan = plan_domain(observed, managed);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "DaemonsCurrent").reason == "SeveralDaemonSets");
  observed.domain = domain({.deleting = true});
  CHECK_THAT(told(plan_domain(observed, managed).actions),
             Catch::Contains("delete driver/") && Catch::Contains("delete further/"));
}

TEST_CASE("an outdated DaemonSet is changed while nobody uses it, else only reported (W-C5)",
          "[controller][plan]") {
  Settings newer = managed;
  newer.daemons.image = "driver:2";
  Observed idle = formed();
  Observed used = with_members({});
  CHECK(told(plan_domain(idle, newer).actions) == "amend " + daemon_place);
  Plan plan = plan_domain(used, newer);
  CHECK(told(plan.actions).empty());
  CHECK(plan.ready);
  CHECK(finding(plan, "DaemonsCurrent").reason == "DaemonSetOutdated");
  CHECK_THAT(finding(plan, "DaemonsCurrent").message,
             Catch::Contains("(image)") &&
                 Catch::Contains("resources.computeDomains.imex.rollOutDaemons=true"));

  newer.roll_out = true;
  CHECK(told(plan_domain(used, newer).actions) == "amend " + daemon_place);
}

TEST_CASE("a DaemonSet that somebody changed is reported and never fought over",
          "[controller][plan]") {
  Observed observed = formed();
  auto edited = daemons_of();
  Json json = edited->json();
  json.at("spec").at("template").at("spec").at("containers").at(0).get_object()["image"] = "other";
  observed.daemon_sets = {object(json)};
  Settings rolling = managed;
  rolling.roll_out = true;
  Plan plan = plan_domain(observed, rolling);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "DaemonsCurrent").reason == "DaemonSetEdited");
  CHECK_THAT(finding(plan, "DaemonsCurrent").message, Catch::Contains("delete it"));
}

TEST_CASE("a DaemonSet of somebody else is neither adopted nor deleted (W-S3)",
          "[controller][plan]") {
  Observed observed = formed();
  const Json spec =
      GENERATE(Json(JsonObject{}),
               Json{{"spec", {{"template", {{"spec", {{"resourceClaims", JsonArray{}}}}}}}}},
               Json{{"metadata", {{"labels", {{domain_label, other_uid}}}}}});
  auto foreign = spec.get_object().empty()
                     ? object({{"metadata", {{"namespace", "driver"}, {"name", daemon_name}}}})
                     : changed(daemons_of(), spec);
  observed.daemon_sets = {foreign};
  Plan plan = plan_domain(observed, managed);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "Ready").reason == "DaemonSetNameTaken");

  observed.domain = domain({.deleting = true});
  observed.templates.clear();
  CHECK(told(plan_domain(observed, managed).actions) == "release default/my-compute-domain");
}

TEST_CASE("a label that the DaemonSet lost is put back", "[controller][plan]") {
  Observed observed = formed();
  observed.daemon_sets = {changed(daemons_of(), {{"metadata", {{"labels", nullptr}}}})};
  CHECK(told(plan_domain(observed, managed).actions) == "mark " + daemon_place);
}

TEST_CASE("deletion removes each object for itself, labels too, then lets the domain go",
          "[controller][plan]") {
  const std::string workload = "delete default/imex-channel-0; release default/imex-channel-0";
  const std::string daemons = "delete " + daemon_place + "; release " + daemon_place;
  Observed observed = with_members({.deleting = true});
  observed.occupant = nullptr;
  CHECK(told(plan_domain(observed, managed).actions) ==
        workload + "; " + daemons + "; " + daemons + "; unlabel a b");

  SECTION("the template without its DaemonSet is no obstacle (W-C2)") {
    observed.daemon_sets.clear();
    observed.nodes.clear();
    CHECK(told(plan_domain(observed, managed).actions) == workload + "; " + daemons);
  }
  SECTION("nothing is left but pods that end: the domain goes") {
    observed.daemon_sets.clear();
    observed.templates.clear();
    observed.nodes.clear();
    CHECK(told(plan_domain(observed, managed).actions) == "release default/my-compute-domain");
  }
  SECTION("what others hold is named") {
    Json held = {{"metadata", {{"finalizers", JsonArray{"foregroundDeletion"}}}}};
    observed.daemon_sets = {changed(going(daemons_of()), held)};
    observed.templates.clear();
    observed.nodes.clear();
    Plan plan = plan_domain(observed, managed);
    CHECK(told(plan.actions).empty());
    CHECK_THAT(finding(plan, "Ready").message, Catch::Contains("DaemonSet " + daemon_place));
  }
}

TEST_CASE("what is left of a vanished domain goes in one go (W-C6)", "[controller][plan]") {
  Remains remains{DomainUid(uid), {daemon_template_of()}, {daemons_of()}, {node("a")}};
  const std::string daemons = "delete " + daemon_place + "; release " + daemon_place;
  CHECK(told(plan_orphans(remains, managed).actions) == daemons + "; " + daemons + "; unlabel a");
}

TEST_CASE("of a vanished domain only a daemon template in its own place goes (W-S3)",
          "[controller][plan]") {
  // As the original driver made it: without a word about its place.
  auto plain = changed(daemon_template_of(), {{"metadata", {{"annotations", nullptr}}}});
  auto renamed = changed(plain, {{"metadata", {{"name", "mine"}}}});
  auto moved = changed(plain, {{"metadata", {{"namespace", "default"}}}});
  for (const auto& copy : {renamed, moved}) {
    REQUIRE(made_for(*copy, DomainUid(uid)));
    CHECK(told(plan_orphans({DomainUid(uid), {copy}}, managed).actions).empty());
  }
  CHECK_FALSE(told(plan_orphans({DomainUid(uid), {plain}}, managed).actions).empty());
}

TEST_CASE("a daemon template that lost its target label gets it back", "[controller][plan]") {
  Observed observed = formed();
  observed.templates[1] =
      changed(daemon_template_of(), {{"metadata", {{"labels", {{target_label, nullptr}}}}}});
  CHECK(told(plan_domain(observed, managed).actions) == "mark " + daemon_place);
}

TEST_CASE("after a change of mode hostManaged refuses the domain, or cleans up when told (W-C19)",
          "[controller][plan]") {
  Settings host{.mode = ImexMode::host_managed, .resource_version = "v1", .spaces = {"driver"}};
  Observed observed = with_members({});
  Observed seen = observed;  // hostManaged does not look at DaemonSets, pods and nodes
  seen.daemon_sets.clear();
  seen.nodes.clear();
  Plan plan = plan_domain(seen, host);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "Ready").reason == "LeftoversOfDriverManaged");
  CHECK_FALSE(plan.ready);
  // The value brings flag and rights; the variable alone would bring forbidden lists.
  auto advises = [](const std::string& message) {
    return message.find(
               "resources.computeDomains.imex.cleanUpOtherMode=true (flag "
               "--clean-up-other-mode") != std::string::npos;
  };
  CHECK(advises(finding(plan, "Ready").message));
  CHECK(advises(finding(plan, "ModeConflict").message));

  SECTION("its deletion waits, and says for what") {
    seen.domain = domain({.deleting = true});
    seen.templates = {daemon_template_of()};
    Plan deletion = plan_domain(seen, host);
    CHECK(told(deletion.actions).empty());
    CHECK(advises(finding(deletion, "Ready").message));
  }
  SECTION("cleaned up") {
    host.clean_up_other_mode = true;
    const std::string daemons = "delete " + daemon_place + "; release " + daemon_place;
    CHECK(told(plan_domain(observed, host).actions) == daemons + "; " + daemons + "; unlabel a b");
  }
}
