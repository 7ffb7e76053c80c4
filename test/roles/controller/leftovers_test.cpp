#include "roles/controller/leftovers.hpp"

#include "catch.hpp"
#include "roles/controller/members.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::controller;
using namespace nvdra::roles::controller::test;

namespace {

const Settings host{.mode = ImexMode::host_managed, .resource_version = "v1", .spaces = {"driver"}};
const Settings managed{.mode = ImexMode::driver_managed,
                       .resource_version = "v1",
                       .daemons = {.space = "driver", .image = "driver:1"},
                       .spaces = {"driver"}};

k8s::ObjectPtr daemon_template_for(const std::string& of) {
  return object(daemon_template(DomainUid(of), "driver", "v1"));
}

std::string lines(const Inventory& seen, const Settings& settings) {
  std::string text;
  for (const std::string& line : describe(find_leftovers(seen, settings), settings))
    text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("a cluster of one mode has no leftovers", "[controller][leftovers]") {
  auto cd = domain({.mode = "All"});
  Inventory in_host{{cd}, {template_of(cd, host.mode)}};
  CHECK(lines(in_host, host).empty());
  Inventory in_driver{{cd}, {template_of(cd, managed.mode), daemon_template_for(uid)}};
  in_driver.daemon_sets = {object(daemon_set(DomainUid(uid), "driver", managed.daemons))};
  in_driver.nodes = {node("a")};
  CHECK(lines(in_driver, managed).empty());
  CHECK(find_leftovers(in_driver, managed).vanished == 0);
}

TEST_CASE("hostManaged lists the domains of driverManaged, those that vanished too (W-C19)",
          "[controller][leftovers]") {
  auto cd = domain({.mode = "All"});
  Inventory seen{
      {cd},
      {template_of(cd, managed.mode), daemon_template_for(uid), daemon_template_for(other_uid)}};
  std::string text = lines(seen, host);
  CHECK_THAT(text, Catch::Contains("of 2 ComputeDomain(s): default/my-compute-domain "
                                   "(ResourceClaimTemplate driver/computedomain-daemon-" +
                                   uid + "), one that no longer exists, UID " + other_uid));
  CHECK_THAT(text, Catch::Contains("imex.mode back to driverManaged") &&
                       Catch::Contains("resources.computeDomains.imex.cleanUpOtherMode=true"));
  CHECK(find_leftovers(seen, host).vanished == 1);
  // A domain that is refused keeps its template.
  CHECK_THAT(text, !Catch::Contains("made again"));

  SECTION("with all that cleaning up may see, and that it is removed") {
    Settings cleaning = host;
    cleaning.clean_up_other_mode = true;
    seen.daemon_sets = {object(daemon_set(DomainUid(uid), "driver", managed.daemons))};
    seen.nodes = {node("a"), node("b"), node("c"), node("d")};
    text = lines(seen, cleaning);
    CHECK_THAT(text, Catch::Contains("DaemonSet driver/computedomain-daemon-" + uid +
                                     ", the label of 4 node(s): a, b, c and 1 more)"));
    CHECK_THAT(text, Catch::Contains("they are being removed"));
    CHECK_THAT(text,
               Catch::Contains("made again, of 1 ComputeDomain(s): default/my-compute-domain"));
  }
}

TEST_CASE("the list of leftovers names ten domains and counts the rest",
          "[controller][leftovers]") {
  Inventory seen;
  for (int i = 10; i < 23; ++i) {
    std::string own = uid.substr(0, uid.size() - 2) + std::to_string(i);
    seen.domains.push_back(domain({.name = "d" + std::to_string(i), .uid = own}));
    seen.templates.push_back(daemon_template_for(own));
  }
  std::string text = lines(seen, host);
  CHECK_THAT(text, Catch::Contains("of 13 ComputeDomain(s): default/d10") &&
                       Catch::Contains("default/d19") && !Catch::Contains("default/d20") &&
                       Catch::Contains(" and 3 more; "));
}

TEST_CASE("a template with the allocation mode of hostManaged is told in driverManaged",
          "[controller][leftovers]") {
  auto all = domain({.mode = "All"});
  Inventory seen{{all}, {template_of(all, host.mode)}};
  CHECK_THAT(
      lines(seen, managed),
      Catch::Contains("Mode driverManaged makes the workload templates that hostManaged made "
                      "again, of 1 ComputeDomain(s): default/my-compute-domain"));
  auto single = domain();
  CHECK(lines({{single}, {template_of(single, host.mode)}}, managed).empty());
}

TEST_CASE("strangers and copies are no leftovers (W-S3)", "[controller][leftovers]") {
  auto copy = changed(daemon_template_for(other_uid), {{"metadata", {{"namespace", "default"}}}});
  auto stranger = changed(daemon_template_for(other_uid), {{"spec", nullptr}});
  Inventory seen{{}, {copy, stranger}};
  CHECK(lines(seen, host).empty());
  CHECK(find_leftovers(seen, host).vanished == 0);
}
