#include "cdi/yaml.hpp"

#include "catch.hpp"

#include <yaml-cpp/yaml.h>

namespace nvdra::cdi {

TEST_CASE("scalars are quoted only when a reader would take them for something else",
          "[cdi][yaml]") {
  struct Row {
    std::string text;
    const char* written;
  };
  // clang-format off
  const Row row = GENERATE(values<Row>({
      {"/dev/nvidia0", "/dev/nvidia0"},
      {"1b4e28ba-2fa1-11d2-883f-0016d3cca427-channel-0", "1b4e28ba-2fa1-11d2-883f-0016d3cca427-channel-0"},
      {"K=V with blanks: no", "'K=V with blanks: no'"},
      {"K=a:b#c", "K=a:b#c"},
      {"K=a #c", "'K=a #c'"},
      {"K=", "K="},
      {"K=\"quoted\"", "K=\"quoted\""},
      {"K=it's", "K=it's"},
      {"K=[1,2]{}", "K=[1,2]{}"},
      {"a:", "'a:'"},
      {"- a", "'- a'"}, {"-a", "-a"}, {"-", "'-'"}, {"? a", "'? a'"}, {"?a", "?a"},
      {"--folder", "--folder"}, {"---a", "'---a'"}, {"...", "'...'"},
      {"#a", "'#a'"}, {"[a", "'[a'"}, {"{a", "'{a'"}, {"&a", "'&a'"}, {"*a", "'*a'"},
      {"!a", "'!a'"}, {"|", "'|'"}, {">", "'>'"}, {"%a", "'%a'"}, {"@a", "'@a'"}, {"`a", "'`a'"},
      {"'a", "'''a'"}, {"\"a", "'\"a'"}, {",", "','"},
      {" a", "' a'"}, {"a ", "'a '"},
      {"", "\"\""}, {"~", "\"~\""}, {"null", "\"null\""}, {"NULL", "\"NULL\""}, {"nULL", "nULL"},
      {"true", "\"true\""}, {"False", "\"False\""}, {"yes", "\"yes\""}, {"y", "\"y\""},
      {"on", "\"on\""}, {"OFF", "\"OFF\""}, {"N", "\"N\""}, {"oN", "oN"},
      {"0", "\"0\""}, {"-12", "\"-12\""}, {"+1", "\"+1\""}, {"1_000", "\"1_000\""},
      {"0x1F", "\"0x1F\""}, {"0o17", "\"0o17\""}, {"0b101", "\"0b101\""}, {"0888", "\"0888\""},
      {"1e3", "\"1e3\""}, {"1E-3", "\"1E-3\""}, {"1.5", "\"1.5\""}, {".5", "\".5\""}, {"1.", "\"1.\""},
      {"0.3.0", "0.3.0"}, {"1e", "1e"}, {".", "."}, {"1-2", "1-2"}, {"+", "+"}, {"0x", "0x"},
      {".inf", "\".inf\""}, {"-.Inf", "\"-.Inf\""}, {".NaN", "\".NaN\""}, {"<<", "\"<<\""},
      {"12:30", "\"12:30\""}, {"1:60", "1:60"}, {"190:20:30.15", "\"190:20:30.15\""},
      {"2026-01-02", "\"2026-01-02\""}, {"2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""},
      {"2026-01-02-channel-0", "2026-01-02-channel-0"},
      {"a\tb", "\"a\\tb\""}, {"a\nb", "\"a\\nb\""}, {"a\\b\"\x01", "\"a\\\\b\\\"\\x01\""},
      {"größe", "größe"}, {"a\u2028b", "\"a\\Lb\""},
  }));
  // clang-format on
  INFO(row.text);
  CHECK(yaml_scalar(row.text) == row.written);

  const YAML::Node alone = YAML::Load("- " + yaml_scalar(row.text) + "\n- x\n");
  CHECK(alone[0].Scalar() == row.text);
  const YAML::Node value = YAML::Load("key: " + yaml_scalar(row.text) + "\nnext: x\n");
  CHECK(value["key"].Scalar() == row.text);
  CHECK(value["next"].Scalar() == "x");
}

TEST_CASE("every single byte and every pair of indicators reads back as written", "[cdi][yaml]") {
  const std::string ascii = [] {
    std::string all;
    for (char c = 1; c < 127; ++c) all += c;
    return all;
  }();
  for (const char first : ascii)
    for (const char second : ascii) {
      const std::string text{first, second};
      const YAML::Node list = YAML::Load("- " + yaml_scalar(text) + "\n");
      if (list[0].Scalar() != text) FAIL("not read back: " << yaml_scalar(text));
    }
}

}  // namespace nvdra::cdi
