#include "k8s/conditions.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

JsonArray conditions() {
  return boost::json::parse(R"([
      {"type": "Other", "status": "Unknown", "reason": "Foreign", "message": "", "extra": 1,
       "lastTransitionTime": "2020-01-01T00:00:00Z"},
      {"type": "Ready", "status": "False", "reason": "Waiting", "message": "for nodes",
       "lastTransitionTime": "2020-01-01T00:00:00Z", "observedGeneration": 1}])")
      .as_array();
}
const Condition waiting{"Ready", "False", "Waiting", "for nodes", 1};
const char* const now = "2026-02-03T04:05:06Z";

}  // namespace

TEST_CASE("a condition that says the same already is no change", "[k8s][conditions]") {
  ConditionChange change = set_condition(conditions(), waiting, now);
  CHECK_FALSE(change.changed);
  CHECK(change.conditions == conditions());
}

TEST_CASE("the transition time moves with the status, and only with it", "[k8s][conditions]") {
  struct Row {
    const char* why;
    Condition wanted;
    const char* since;
  };
  const Row row = GENERATE(values<Row>({
      {"status", {"Ready", "True", "Waiting", "for nodes", 1}, now},
      {"reason", {"Ready", "False", "Failed", "for nodes", 1}, "2020-01-01T00:00:00Z"},
      {"message", {"Ready", "False", "Waiting", "for daemons", 1}, "2020-01-01T00:00:00Z"},
      {"generation", {"Ready", "False", "Waiting", "for nodes", 2}, "2020-01-01T00:00:00Z"},
  }));
  INFO(row.why);
  ConditionChange change = set_condition(conditions(), row.wanted, now);
  CHECK(change.changed);
  REQUIRE(change.conditions.size() == 2);
  CHECK(change.conditions[0] == conditions()[0]);
  const Json* ready = find_condition(change.conditions, "Ready");
  REQUIRE(ready);
  CHECK(text_or_empty(*ready, "lastTransitionTime") == row.since);
  CHECK(text_or_empty(*ready, "status") == row.wanted.status);
  CHECK(text_or_empty(*ready, "reason") == row.wanted.reason);
  CHECK(text_or_empty(*ready, "message") == row.wanted.message);
  CHECK(int_or(*ready, "observedGeneration", 0) == row.wanted.observed_generation);
  CHECK(is_true(change.conditions, "Ready") == (row.wanted.status == "True"));
}

TEST_CASE("a new condition is added at the end with the present time", "[k8s][conditions]") {
  ConditionChange change = set_condition(conditions(), {"New", "True", "Because"}, now);
  CHECK(change.changed);
  REQUIRE(change.conditions.size() == 3);
  CHECK(text_or_empty(change.conditions[2], "lastTransitionTime") == now);
  CHECK_FALSE(find(change.conditions[2], "observedGeneration"));
}

TEST_CASE("removing a condition leaves the others", "[k8s][conditions]") {
  ConditionChange change = remove_condition(conditions(), "Ready");
  CHECK(change.changed);
  REQUIRE(change.conditions.size() == 1);
  CHECK(change.conditions[0] == conditions()[0]);
  CHECK_FALSE(remove_condition(change.conditions, "Ready").changed);
}
