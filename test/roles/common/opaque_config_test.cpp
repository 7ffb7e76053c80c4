#include "roles/common/opaque_config.hpp"

#include "catch.hpp"

#include <string>

using namespace nvdra;
using namespace nvdra::roles;

namespace {

constexpr const char* head = R"("apiVersion":"resource.nvidia.com/v1beta1",)";

Result<OpaqueConfig> strict(const std::string& text) {
  Result<Json> json = parse_json(text);
  REQUIRE(json);
  return decode_strict(*json, text);
}

}  // namespace

TEST_CASE("a channel config is read with its domain and mode", "[roles][opaque]") {
  auto config =
      strict(std::string("{") + head +
             R"("kind":"ComputeDomainChannelConfig","domainID":"d","allocationMode":"All"})");
  REQUIRE(config);
  const auto* channel = std::get_if<ChannelConfig>(&*config);
  REQUIRE(channel);
  CHECK(channel->domain.value == "d");
  CHECK(channel->all());
}

TEST_CASE("strict decoding names every unknown and duplicate field in one error",
          "[roles][opaque]") {
  auto config = strict(std::string("{") + head +
                       R"("kind":"ComputeDomainDaemonConfig","domainID":"a","domainID":"b",)" +
                       R"("unexpectedField":1,"allocationMode":"All"})");
  REQUIRE_FALSE(config);
  CHECK(
      config.error().text() ==
      "strict decoding error: unknown field \"unexpectedField\", unknown field \"allocationMode\", "
      "duplicate field \"domainID\"");
}

TEST_CASE("field names are case sensitive", "[roles][opaque]") {
  auto config =
      strict(std::string("{") + head + R"("kind":"ComputeDomainChannelConfig","DomainID":"d"})");
  REQUIRE_FALSE(config);
  CHECK(config.error().text() == "strict decoding error: unknown field \"DomainID\"");
}

TEST_CASE("what is stored is read leniently", "[roles][opaque]") {
  Json stored = {{"apiVersion", "resource.nvidia.com/v1beta1"},
                 {"kind", "ComputeDomainChannelConfig"},
                 {"domainID", "../x"},
                 {"fromTheFuture", 1}};
  auto config = decode_lenient(stored);
  REQUIRE(config);
  CHECK(std::get<ChannelConfig>(*config).domain.value == "../x");
}

TEST_CASE("configs that are no claim configs are refused by name", "[roles][opaque]") {
  struct Row {
    const char* why;
    std::string text;
    const char* part;
  };
  const Row row = GENERATE(values<Row>({
      {"no kind", R"({"apiVersion":"resource.nvidia.com/v1beta1"})", "kind is missing"},
      {"no version", R"({"kind":"ComputeDomainChannelConfig"})", "apiVersion is missing"},
      {"other version", R"({"apiVersion":"v9","kind":"ComputeDomainChannelConfig"})", "\"v9\""},
      {"GPU kind", R"({"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig"})",
       "GpuConfig"},
      {"unknown kind", R"({"apiVersion":"resource.nvidia.com/v1beta1","kind":"X"})",
       "unknown kind"},
      {"a list", "[]", "not a JSON object"},
      {"number for a text",
       R"({"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig","domainID":5})",
       "domainID is a number"},
  }));
  INFO(row.why);
  auto config = strict(row.text);
  REQUIRE_FALSE(config);
  CHECK_THAT(config.error().text(), Catch::Contains(row.part));
}

TEST_CASE("a domain id that could leave its folder is refused", "[roles][opaque]") {
  const std::string id = GENERATE("", ".", "..", "../../../etc", "/etc/passwd", "a/../../b", "a/b",
                                  "a%2fb", "-x", "x y", "a\nb");
  INFO(id);
  CHECK_FALSE(validate_domain_id(id));
  CHECK_FALSE(validate_domain_id(std::string(64, 'a')));
  CHECK_FALSE(validate_domain_id(std::string("a\0b", 3)));
}

TEST_CASE("a UID is a good domain id", "[roles][opaque]") {
  CHECK(validate_domain_id("0f8fad5b-d9cb-469f-a165-70867728950e"));
}
