#include "base/utf8.hpp"

#include "catch.hpp"

#include <string>

using namespace nvdra;

TEST_CASE("the first byte that is no UTF-8 is found", "[base][utf8]") {
  struct Row {
    std::string text;
    std::size_t at;
  };
  const Row row = GENERATE(values<Row>({
      {"", std::string_view::npos},
      {"a\u00e9\u20ac\U0001f600", std::string_view::npos},
      {"ab\x80", 2},
      {"\xc0\xaf", 0},          // an overlong slash
      {"\xe0\x80\xaf", 0},      // the same in three bytes
      {"x\xed\xa0\x80", 1},     // a surrogate
      {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xe2\x82", 0},          // cut off
      {"\xc3\xa9\xff", 2},
  }));
  INFO(row.text);
  CHECK(first_not_utf8(row.text) == row.at);
}
