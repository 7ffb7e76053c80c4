#include "base/json.hpp"

#include "catch.hpp"

using namespace nvdra;

namespace {

Json parsed(std::string_view text) {
  Result<Json> json = parse_json(text);
  if (!json) FAIL(json.error().text());
  return *std::move(json);
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

const char* const pod = R"({
  "metadata": {"name": "p", "labels": {"a/b": "x"}, "generation": 3, "deleted": true},
  "spec": {"containers": [{"name": "c"}], "ratio": 2.0, "half": 0.5, "big": 18446744073709551615}
})";

}  // namespace

TEST_CASE("a text is parsed and written compactly in the same order", "[base][json]") {
  CHECK(to_text(parsed("{ \"b\" : 1, \"a\" : [ true, null, \"x\" ] }\n")) ==
        R"({"b":1,"a":[true,null,"x"]})");
}

TEST_CASE("bad JSON is refused with its place", "[base][json]") {
  struct Row {
    std::string text, sentence;
  };
  const Row row = GENERATE(values<Row>({
      {"", "invalid JSON at line 1, column 1: incomplete JSON"},
      {"{\n  \"a\": 1,\n  \"b\" 2\n}", "invalid JSON at line 3, column 7: syntax error"},
      {"{\"a\":1} x", "invalid JSON at line 1, column 9: extra data"},
      {"{\"a\":1,}", "invalid JSON at line 1, column 8: syntax error"},
      {"[1,2", "invalid JSON at line 1, column 5: incomplete JSON"},
      {"{\"a\": nul}", "invalid JSON at line 1, column 7: syntax error"},
      {"// no", "invalid JSON at line 1, column 1: syntax error"},
      {nested(65), "invalid JSON at line 1, column 65: too deep"},
  }));
  INFO(row.text);
  Result<Json> json = parse_json(row.text);
  REQUIRE_FALSE(json);
  CHECK(json.error().text() == row.sentence);
}

TEST_CASE("bytes that are not UTF-8 are refused", "[base][json]") {
  CHECK_FALSE(parse_json("\"\xff\""));
  CHECK(parse_json("\"\xc3\xbc\""));
}

TEST_CASE("nesting up to the limit is accepted", "[base][json]") {
  CHECK(parse_json(nested(64)));
}

TEST_CASE("lenient look-ups give nothing for what is missing or of another type", "[base][json]") {
  Json json = parsed(pod);
  CHECK(text_or_empty(json, "metadata/name") == "p");
  CHECK(text_or_empty(json, "metadata/generation").empty());
  CHECK(text_or_empty(json, "metadata/none/deeper").empty());
  CHECK(text_or_empty(*get(json, "metadata"), "name") == "p");
  CHECK(get(*find(json, "metadata/labels"), "a/b") != nullptr);
  CHECK(find(json, "metadata/labels/a/b") == nullptr);
  CHECK(find(json, "spec/containers/name") == nullptr);
  CHECK(find(json, "") == &json);
  CHECK(int_or(json, "metadata/generation", 0) == 3);
  CHECK(int_or(json, "spec/ratio", 0) == 2);
  CHECK(int_or(json, "spec/half", -1) == -1);
  CHECK(int_or(json, "spec/big", -1) == -1);
  CHECK(int_or(json, "metadata/name", -1) == -1);
  CHECK(bool_or(json, "metadata/deleted", false));
  CHECK(bool_or(json, "metadata/name", true));
  CHECK(array_or_empty(json, "spec/containers").size() == 1);
  CHECK(array_or_empty(json, "spec").empty());
  CHECK(object_or_empty(json, "metadata/labels").size() == 1);
  CHECK(object_or_empty(json, "metadata/name").empty());
}

TEST_CASE("checked look-ups name the field and what was found", "[base][json]") {
  Json json = parsed(pod);
  CHECK(*text_at(json, "metadata/name") == "p");
  CHECK(*int_at(json, "metadata/generation") == 3);
  CHECK(text_at(json, "metadata/none").error().text() ==
        "field metadata/none is missing, expected a string");
  CHECK(text_at(json, "metadata/generation").error().text() ==
        "field metadata/generation is a number, expected a string");
  CHECK(text_at(json, "spec/containers").error().text() ==
        "field spec/containers is a list, expected a string");
  CHECK(int_at(json, "metadata").error().text() ==
        "field metadata is an object, expected an integer");
  CHECK(int_at(json, "spec/half").error().text() ==
        "field spec/half is a number, expected an integer");
}

TEST_CASE("duplicate keys are found with their paths", "[base][json]") {
  struct Row {
    std::string text;
    std::vector<std::string> paths;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}]})", {}},
      {R"({"a":1,"a":2})", {"a"}},
      {R"({"a":1,"a":2,"a":3})", {"a"}},
      {R"({"a":{"b":[0,"x",{"c":1,"d":2,"c":3}]}})", {"a.b[2].c"}},
      {R"({"a":[[1,{"x":1}],[{"y":1,"y":2}]]})", {"a[1][0].y"}},
      {R"([{"k":1,"k":1}])", {"[0].k"}},
      {R"({"a":{"b":1},"a":{"b":2,"b":3}})", {"a", "a.b"}},
      {R"({"\u0061":1,"a":2})", {"a"}},
      {R"({"a":1,"a":2, oops)", {"a"}},
      {R"("text")", {}},
  }));
  INFO(row.text);
  CHECK(duplicate_keys(row.text) == row.paths);
}

TEST_CASE("a merge patch sets, removes and replaces as RFC 7386 says", "[base][json]") {
  struct Row {
    const char *target, *patch, *expected;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a"])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({"a":1})", R"(null)", R"(null)"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  }));
  Json target = parsed(row.target);
  merge_patch(target, parsed(row.patch));
  CHECK(to_text(target) == row.expected);
}
