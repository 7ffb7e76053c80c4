#include "cdi/read.hpp"

#include "catch.hpp"
#include "cdi/data.hpp"

namespace nvdra::cdi {

TEST_CASE("a file that is no UTF-8 text is refused with the place", "[cdi][read]") {
  auto spec = cdi::parse("kind: a\xff/b\n");
  REQUIRE_FALSE(spec);
  CHECK(spec.error().text() == "the CDI file is no UTF-8 text: see byte 8");
}

TEST_CASE("a claim's file tells which devices it holds", "[cdi][read]") {
  const auto spec = parse(golden("channel-roots-differ.yaml"));
  REQUIRE(spec);
  const auto devices = claim_devices(*spec, claim_with_digit);
  REQUIRE(devices);
  CHECK(*devices == std::vector<std::string>{"channel-0"});
}

TEST_CASE("a file of another kind or claim is not ours", "[cdi][read]") {
  const auto foreign = claim_devices(base_spec(), claim_with_digit);
  REQUIRE_FALSE(foreign);
  CHECK_THAT(foreign.error().text(), Catch::Contains("has kind"));
  const auto other = claim_devices(channel_spec(claim_with_letter), claim_with_digit);
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().text(), Catch::Contains("does not belong to claim"));
}

TEST_CASE("unknown fields of newer writers are passed over", "[cdi][read]") {
  const auto spec = parse(
      "cdiVersion: 1.0.0\nkind: a/b\nannotations: {x: y}\n"
      "devices: [{name: d, containerEdits: {intelRdt: {}, env: [A=b]}}]\n");
  REQUIRE(spec);
  REQUIRE(spec->devices.size() == 1);
  CHECK(spec->devices[0].edits.env == std::vector<std::string>{"A=b"});
}

TEST_CASE("a damaged file is an error that says where", "[cdi][read]") {
  struct Row {
    const char* text;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {"", "a mapping with kind was expected"},
      {"- a\n- b\n", "line 1"},
      {"kind: [a]\n", "kind is no text"},
      {"kind: a\ndevices: 7\n", "line 2 of the CDI file: devices is no list"},
      {"kind: a\ndevices:\n- name: x\n  containerEdits:\n    deviceNodes:\n    - major: many\n",
       "line 6 of the CDI file: major is no number"},
      {"kind: a\ndevices:\n- x\n", "line 3"},
      {"kind: a: b\n", "no YAML"},
  }));
  INFO(row.text);
  const auto spec = parse(row.text);
  REQUIRE_FALSE(spec);
  CHECK_THAT(spec.error().text(), Catch::Contains(row.says));
}

TEST_CASE("a truncated file never reads as another claim's devices", "[cdi][read]") {
  const std::string whole = golden("daemon.yaml");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto spec = parse(whole.substr(0, size));
    if (!spec) continue;
    const auto devices = claim_devices(*spec, claim_with_digit);
    if (!devices) continue;
    for (const std::string& device : *devices) CHECK(std::string("daemon-0").starts_with(device));
  }
}

}  // namespace nvdra::cdi
