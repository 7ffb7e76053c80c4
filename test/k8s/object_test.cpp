#include "k8s/object.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::k8s;

namespace {

Object pod() {
  return Object(boost::json::parse(R"({"metadata": {
      "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
      "labels": {"example.com/a": "1", "empty": ""},
      "annotations": {"note": "x"},
      "finalizers": ["first", "second"]}})"));
}

}  // namespace

TEST_CASE("an object tells its identity, labels and finalizers", "[k8s][object]") {
  Object object = pod();
  CHECK(object.key() == ObjectKey{"n", "p"});
  CHECK(object.key().text() == "n/p");
  CHECK(object.uid() == "u");
  CHECK(object.version() == "7");
  CHECK(object.generation() == 3);
  CHECK_FALSE(object.deleting());
  REQUIRE(object.label("example.com/a"));
  CHECK(object.label("example.com/a")->get_string() == "1");
  REQUIRE(object.label("empty"));
  CHECK_FALSE(object.label("absent"));
  REQUIRE(object.annotation("note"));
  CHECK(object.has_finalizer("second"));
  CHECK(object.finalizer_index("second") == 1);
  CHECK(object.finalizer_index("third") == -1);
}

TEST_CASE("an object without metadata has empty answers, not a crash", "[k8s][object]") {
  for (const char* text :
       {"{}", "[]", R"({"metadata": null})", R"({"metadata": {"labels": []}})"}) {
    Object object(boost::json::parse(text));
    CHECK(object.key() == ObjectKey{});
    CHECK(object.key().text().empty());
    CHECK_FALSE(object.label("a"));
    CHECK_FALSE(object.has_finalizer("a"));
    CHECK_FALSE(object.deleting());
  }
}

TEST_CASE("resource versions are compared as numbers", "[k8s][object]") {
  CHECK(newer("10", "9"));
  CHECK_FALSE(newer("9", "10"));
  CHECK_FALSE(newer("10", "10"));
  CHECK(newer("1", ""));
  CHECK_FALSE(newer("", "1"));
}
