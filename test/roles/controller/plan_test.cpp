#include "roles/controller/plan.hpp"

#include "catch.hpp"
#include "roles/controller/world.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

const Settings host{.mode = ImexMode::host_managed, .resource_version = "v1", .spaces = {"driver"}};
constexpr const char* place = "default/imex-channel-0";

Observed seen(k8s::ObjectPtr domain, k8s::ObjectPtr occupant = nullptr) {
  Observed observed{std::move(domain), occupant, "", {}};
  if (occupant && made_for(*occupant, DomainUid(uid))) observed.templates.push_back(occupant);
  return observed;
}

const Finding& finding(const Plan& plan, std::string_view type) {
  for (const Finding& each : plan.findings)
    if (each.type == type) return each;
  FAIL("no finding " << type);
  return plan.findings.front();
}

}  // namespace

TEST_CASE("a new ComputeDomain gets the finalizer, then its template", "[controller][plan]") {
  Plan plan = plan_domain(seen(domain({.with_finalizer = false})), host);
  CHECK(told(plan.actions) == "mark default/my-compute-domain; create default/imex-channel-0");
  CHECK_FALSE(plan.ready);
}

TEST_CASE("a ComputeDomain is Ready only once its template exists", "[controller][plan]") {
  auto cd = domain();
  Plan plan = plan_domain(seen(cd, template_of(cd, ImexMode::host_managed)), host);
  CHECK(told(plan.actions).empty());
  CHECK(plan.ready);
  CHECK(finding(plan, "Ready").holds);
}

TEST_CASE("hostManaged forces Single into the template of a domain that asks for All",
          "[controller][objects]") {
  auto cd = domain({.mode = "All"});
  auto json = workload_template(read_domain(*cd), ImexMode::host_managed, "v1");
  CHECK(text_or_empty(json.at("spec").at("spec").at("devices").at("config").at(0),
                      "opaque/parameters/allocationMode") == "Single");
  json = workload_template(read_domain(*cd), ImexMode::driver_managed, "v1");
  CHECK(text_or_empty(json.at("spec").at("spec").at("devices").at("config").at(0),
                      "opaque/parameters/allocationMode") == "All");
}

TEST_CASE("resource.k8s.io/v1beta1 has the class directly in the request",
          "[controller][objects]") {
  auto json = workload_template(read_domain(*domain()), ImexMode::host_managed, "v1beta1");
  CHECK(text_or_empty(json, "apiVersion") == "resource.k8s.io/v1beta1");
  CHECK(text_or_empty(json.at("spec").at("spec").at("devices").at("requests").at(0),
                      "deviceClassName") == channel_class);
}

TEST_CASE("a template of somebody else is never touched, and the conflict is named",
          "[controller][plan]") {
  auto foreign =
      object({{"metadata", {{"namespace", "default"}, {"name", "imex-channel-0"}, {"uid", "f"}}},
              {"spec", JsonObject{}}});
  Plan plan = plan_domain(seen(domain(), foreign), host);
  CHECK(told(plan.actions).empty());
  CHECK_FALSE(plan.ready);
  const Finding& ready = finding(plan, "Ready");
  CHECK(ready.reason == "TemplateNameTaken");
  CHECK(ready.warning);
  CHECK_THAT(ready.message, Catch::Contains(place) &&
                                Catch::Contains("delete it, or create the ComputeDomain again"));
}

TEST_CASE("two domains that name one template: the second is told who has it",
          "[controller][plan]") {
  auto first = domain({.name = "first", .uid = other_uid});
  Observed observed = seen(domain(), template_of(first, ImexMode::host_managed));
  observed.occupant_owner = "default/first";
  Plan plan = plan_domain(observed, host);
  CHECK(told(plan.actions).empty());
  CHECK_THAT(finding(plan, "Ready").message, Catch::Contains("ComputeDomain default/first"));
}

TEST_CASE("our label alone does not make a template ours", "[controller][objects]") {
  auto cd = domain();
  auto ours = template_of(cd, ImexMode::host_managed);
  CHECK(made_for(*ours, DomainUid(uid)));
  CHECK_FALSE(made_for(*ours, DomainUid(other_uid)));
  auto other_config = workload_template(read_domain(*domain({.uid = other_uid})), host.mode, "v1");
  other_config.at("metadata").at("labels").get_object()[domain_label] = uid;
  CHECK_FALSE(made_for(*object(other_config), DomainUid(uid)));
}

TEST_CASE("a copy of our template under another name is left alone (W-S3)", "[controller][plan]") {
  auto cd = domain({.deleting = true});
  const Json where = GENERATE(Json{{"name", "mine"}}, Json{{"namespace", "elsewhere"}});
  auto copy = changed(template_of(cd, host.mode), {{"metadata", where}});
  CHECK_FALSE(made_for(*copy, DomainUid(uid)));

  SECTION("one of a template that the original driver made tells nothing of its origin") {
    copy = changed(copy, {{"metadata", {{"annotations", nullptr}}}});
    REQUIRE(made_for(*copy, DomainUid(uid)));
    Observed observed = seen(cd);
    observed.templates.push_back(copy);
    CHECK(told(plan_domain(observed, host).actions) == "release default/my-compute-domain");
  }
}

TEST_CASE("a template of the original driver is adopted where it must stand, without its label too",
          "[controller][plan]") {
  auto cd = domain({.deleting = true});
  auto original =
      changed(template_of(cd, host.mode),
              {{"metadata", {{"annotations", nullptr}, {"labels", {{target_label, nullptr}}}}}});
  CHECK(told(plan_domain(seen(cd, original), host).actions) ==
        "delete default/imex-channel-0; release default/imex-channel-0");
}

TEST_CASE("a template that a user deleted is let go, and made again", "[controller][plan]") {
  auto cd = domain();
  auto going = changed(template_of(cd, host.mode),
                       {{"metadata", {{"deletionTimestamp", "2026-01-02T03:04:05Z"}}}});
  CHECK(told(plan_domain(seen(cd, going), host).actions) == "release default/imex-channel-0");
  CHECK(told(plan_domain(seen(cd), host).actions) == "create default/imex-channel-0");
}

TEST_CASE("a template with another spec than wanted is replaced", "[controller][plan]") {
  auto cd = domain({.mode = "All"});
  auto from_other_mode = template_of(cd, ImexMode::driver_managed);
  CHECK(told(plan_domain(seen(cd, from_other_mode), host).actions) ==
        "delete default/imex-channel-0; release default/imex-channel-0");
}

TEST_CASE("a lost target label is put back", "[controller][plan]") {
  auto cd = domain();
  auto bare =
      changed(template_of(cd, host.mode), {{"metadata", {{"labels", {{target_label, nullptr}}}}}});
  Plan plan = plan_domain(seen(cd, bare), host);
  CHECK(told(plan.actions) == "mark default/imex-channel-0");
  CHECK(plan.ready);
}

TEST_CASE("deletion removes the template and then lets the ComputeDomain go",
          "[controller][plan]") {
  auto cd = domain({.deleting = true});
  CHECK(told(plan_domain(seen(cd, template_of(cd, host.mode)), host).actions) ==
        "delete default/imex-channel-0; release default/imex-channel-0");
  CHECK(told(plan_domain(seen(cd), host).actions) == "release default/my-compute-domain");
}

TEST_CASE("deletion waits for a template that others hold, and says so", "[controller][plan]") {
  auto cd = domain({.deleting = true});
  auto held =
      changed(template_of(cd, host.mode), {{"metadata",
                                            {{"deletionTimestamp", "2026-01-02T03:04:05Z"},
                                             {"finalizers", JsonArray{"example.com/backup"}}}}});
  Plan plan = plan_domain(seen(cd, held), host);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "Ready").reason == "Terminating");
  CHECK_THAT(finding(plan, "Ready").message, Catch::Contains(place));
}

TEST_CASE("a finalizer is never added to a ComputeDomain that is being deleted",
          "[controller][plan]") {
  auto cd = domain({.with_finalizer = false, .deleting = true});
  CHECK(told(plan_domain(seen(cd), host).actions).empty());
}

TEST_CASE("an object without a spec is reported, not crashed on", "[controller][plan]") {
  auto cd = changed(domain(), {{"spec", nullptr}});
  Plan plan = plan_domain(seen(cd), host);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "Ready").reason == "InvalidTemplateName");
}

TEST_CASE("a template name that is no object name creates nothing", "[controller][plan]") {
  const std::string name = GENERATE("A", "a b", "a\nnamespace: kube-system", "-a", "");
  Plan plan = plan_domain(seen(domain({.template_name = name})), host);
  CHECK(told(plan.actions).empty());
  CHECK_THAT(finding(plan, "Ready").message, Catch::Contains("resourceClaimTemplate.name"));
}

TEST_CASE("what driverManaged left behind is reported in hostManaged, not removed",
          "[controller][plan]") {
  auto cd = domain();
  Json daemon = daemon_template(DomainUid(uid), "driver", "v1");
  Observed observed = seen(cd, template_of(cd, host.mode));
  observed.templates.push_back(object(daemon));
  Plan plan = plan_domain(observed, host);
  CHECK(told(plan.actions).empty());
  CHECK(finding(plan, "ModeConflict").holds);
  CHECK_FALSE(plan.ready);
  CHECK(told(plan_orphans({DomainUid(uid), {object(daemon)}}, host).actions).empty());
}

TEST_CASE("a template whose ComputeDomain is gone is removed in one go", "[controller][plan]") {
  Plan plan = plan_orphans({DomainUid(uid), {template_of(domain(), host.mode)}}, host);
  CHECK(told(plan.actions) == "delete default/imex-channel-0; release default/imex-channel-0");
}
