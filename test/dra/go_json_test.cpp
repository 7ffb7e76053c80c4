#include "dra/go_json.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::dra;

namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

}  // namespace

TEST_CASE("strings are escaped as Go escapes them", "[dra][go_json]") {
  struct Row {
    const char* why;
    std::string text;
    std::string written;
  };
  const Row row = GENERATE(values<Row>({
      {"plain", "node-a/b", R"("node-a/b")"},
      {"quote and backslash", R"(a"b\c)", R"("a\"b\\c")"},
      {"short escapes", "\b\f\n\r\t", R"("\b\f\n\r\t")"},
      {"other control characters", std::string("\x01\x1f\0", 3), R"("\u0001\u001f\u0000")"},
      {"what would be HTML", "<a>&", R"("\u003ca\u003e\u0026")"},
      {"line separators of JavaScript", "\u2028\u2029\u202a", "\"\\u2028\\u2029\u202a\""},
      {"other UTF-8 and DEL", "é€𝄞\x7f", "\"é€𝄞\x7f\""},
      {"a lone continuation byte", "a\x80z", R"("a\ufffdz")"},
      {"a cut sequence", "\xe2\x82", R"("\ufffd\ufffd")"},
      {"an overlong spelling", "\xc0\xaf", R"("\ufffd\ufffd")"},
      {"a surrogate", "\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},
  }));
  INFO(row.why);
  CHECK(quoted(row.text) == row.written);
}

TEST_CASE("compact text keeps the order of keys and escapes at every depth", "[dra][go_json]") {
  std::string text = R"({"z":[1,-2,true,null,{}],"a":{"<":"&"},"e":[]})";
  std::string out;
  append_compact(out, *parse_json(text));
  CHECK(out == R"({"z":[1,-2,true,null,{}],"a":{"\u003c":"\u0026"},"e":[]})");
}

TEST_CASE("members are the exact pieces of their text", "[dra][go_json]") {
  Result<std::vector<RawMember>> found =
      members_of(R"( {"a" : {"x":"}\"{"} ,"b":[1,[2]],"c":12} )");
  REQUIRE(found);
  REQUIRE(found->size() == 3);
  CHECK((*found)[0].key == "\"a\"");
  CHECK((*found)[0].value == R"({"x":"}\"{"})");
  CHECK((*found)[1].value == "[1,[2]]");
  CHECK(value_of(*found, "c") == "12");
  CHECK(value_of(*found, "d").empty());
  CHECK(members_of("{}")->empty());
}

TEST_CASE("a text that is no object says where it goes wrong", "[dra][go_json]") {
  struct Row {
    std::string text;
    std::string error;
  };
  const Row row = GENERATE(values<Row>({
      {"", "byte 0: expected '{'"},
      {"[]", "byte 0: expected '{'"},
      {"{", "byte 1: expected a key in quotes"},
      {R"({"a)", "byte 3: expected a key in quotes"},
      {R"({"a")", "byte 4: expected ':'"},
      {R"({"a":)", "byte 5: expected a complete value"},
      {R"({"a":{"b":1)", "byte 11: expected a complete value"},
      {R"({"a":"\)", "byte 7: expected a complete value"},
      {R"({"a":1)", "byte 6: expected '}' or ','"},
      {R"({"a":1}x)", "byte 7: expected nothing more"},
  }));
  INFO(row.text);
  Result<std::vector<RawMember>> found = members_of(row.text);
  REQUIRE_FALSE(found);
  CHECK(found.error().text() == row.error);
}
