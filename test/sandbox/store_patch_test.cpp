#include "sandbox/store_patch.hpp"

#include "catch.hpp"
#include "sandbox/crd_yaml.hpp"
#include "sandbox/store_cel.hpp"
#include "world.hpp"

using namespace nvdra;
using namespace nvdra::sandbox;

TEST_CASE("a JSON patch applies as a whole or not at all", "[sandbox][patch]") {
  struct Row {
    const char* why;
    const char* patch;
    const char* result;  // "" = does not apply
  };
  // clang-format off
  const Row row = GENERATE(values<Row>({
      {"add a member", "[{'op':'add','path':'/c','value':3}]", "{'a':{'b':[1,2]},'c':3}"},
      {"append to a list", "[{'op':'add','path':'/a/b/-','value':3}]", "{'a':{'b':[1,2,3]}}"},
      {"insert into a list", "[{'op':'add','path':'/a/b/0','value':3}]", "{'a':{'b':[3,1,2]}}"},
      {"remove by index", "[{'op':'remove','path':'/a/b/0'}]", "{'a':{'b':[2]}}"},
      {"a test that holds", "[{'op':'test','path':'/a/b/1','value':2},{'op':'replace','path':'/a/b/1','value':5}]", "{'a':{'b':[1,5]}}"},
      {"a test that fails", "[{'op':'replace','path':'/a','value':1},{'op':'test','path':'/a','value':2}]", ""},
      {"remove what is not there", "[{'op':'remove','path':'/x'}]", ""},
      {"add below what is not there", "[{'op':'add','path':'/x/y','value':1}]", ""},
      {"move", "[{'op':'move','from':'/a/b','path':'/d'}]", "{'a':{},'d':[1,2]}"},
      {"escaped names", "[{'op':'add','path':'/x~1y~0','value':1}]", "{'a':{'b':[1,2]},'x/y~':1}"},
  }));
  // clang-format on
  INFO(row.why);
  auto result = json_patch(json("{'a':{'b':[1,2]}}"), json(row.patch));
  REQUIRE(result.has_value() == !std::string_view(row.result).empty());
  if (result) {
    CHECK(*result == json(row.result));
  } else {
    CHECK(why(result.error()) == Reason::invalid);
  }
}

TEST_CASE("a strategic merge patch merges known lists by key", "[sandbox][patch]") {
  struct Row {
    const char* why;
    const char* before;
    const char* patch;
    const char* after;
  };
  // clang-format off
  const Row row = GENERATE(values<Row>({
      {"container by name", "{'containers':[{'name':'a','image':'1'},{'name':'b'}]}", "{'containers':[{'name':'a','image':'2'}]}", "{'containers':[{'name':'a','image':'2'},{'name':'b'}]}"},
      {"delete directive", "{'containers':[{'name':'a'},{'name':'b'}]}", "{'containers':[{'name':'a','$patch':'delete'}]}", "{'containers':[{'name':'b'}]}"},
      {"finalizers are a set", "{'finalizers':['x']}", "{'finalizers':['x','y']}", "{'finalizers':['x','y']}"},
      {"delete from a set", "{'finalizers':['x','y']}", "{'$deleteFromPrimitiveList/finalizers':['x']}", "{'finalizers':['y']}"},
      {"other lists are replaced", "{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'b'}]}", "{'tolerations':[{'key':'b'}]}"},
      {"null removes", "{'a':{'b':1,'c':2}}", "{'a':{'b':null}}", "{'a':{'c':2}}"},
      {"order directive is no field", "{'containers':[{'name':'a'}]}", "{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'name':'a','x':1}]}", "{'containers':[{'name':'a','x':1}]}"},
      {"retained keys", "{'strategy':{'a':1,'b':2}}", "{'strategy':{'$retainKeys':['b'],'b':3}}", "{'strategy':{'b':3}}"},
      {"replace directive", "{'a':{'b':1}}", "{'a':{'$patch':'replace','c':2}}", "{'a':{'c':2}}"},
  }));
  // clang-format on
  INFO(row.why);
  auto result = strategic_merge(json(row.before), json(row.patch));
  REQUIRE(result);
  CHECK(*result == json(row.after));
}

TEST_CASE("expressions of device classes and rules", "[sandbox][cel]") {
  CelVariables variables{
      {"device", json("{'driver': 'd.x', 'attributes': {'d.x': {'type': 'channel', 'id': 0}}}")},
      {"self", json("{'a': [1, 2]}")},
      {"oldSelf", json("{'a': [1, 2]}")}};
  struct Row {
    const char* expression;
    bool result;
  };
  const Row row = GENERATE(values<Row>({
      {"device.driver == 'd.x' && device.attributes['d.x'].type == 'channel' &&\n "
       "device.attributes['d.x'].id == 0",
       true},
      {"device.attributes['d.x'].type == 'daemon'", false},
      {"self == oldSelf", true},
      {"self != oldSelf || !(1 < 2)", false},
      {"false && device.attributes['other'].x == 1", false},
      {"device.attributes['other'].x == 1 && false", false},
      {"'channel' in ['daemon', 'channel']", true},
      {"has(device.attributes) && !has(device.nothing)", true},
      {"size(self.a) == 2 && device.driver.startsWith('d.')", true},
      {"device.driver.matches('^[a-z].x$') ? 1 + 1 == 2 : false", true},
      {"device.driver==\"d.x\"", true},
  }));
  INFO(row.expression);
  auto result = evaluate_condition(row.expression, variables);
  REQUIRE(result);
  CHECK(*result == row.result);
}

TEST_CASE("an expression that cannot be evaluated is an error", "[sandbox][cel]") {
  for (const char* expression :
       {"a.b", "1 +", "'x", "1 == ", "true && 1", "has(x", "5", "[1", "x["})
    CHECK_FALSE(evaluate_condition(expression, {{"x", json("{}")}}));
}

TEST_CASE("YAML scalars have the types of JSON", "[sandbox][yaml]") {
  auto documents =
      parse_yaml("a: 1\nb: '1'\nc: true\nd: null\ne: [x, 1.5]\n---\n---\n{\"f\": {}}\n");
  REQUIRE(documents);
  REQUIRE(documents->size() == 2);
  CHECK(documents->at(0) == json("{'a':1,'b':'1','c':true,'d':null,'e':['x',1.5]}"));
  CHECK(documents->at(1) == json("{'f':{}}"));
  auto bad = parse_yaml("a: [1\n");
  REQUIRE_FALSE(bad);
  CHECK_THAT(bad.error().text(), Catch::Contains("malformed at line"));
}
