#include "roles/kubelet_plugin/allocation.hpp"

#include "catch.hpp"
#include "roles/kubelet_plugin/claims.hpp"

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

std::vector<ConfigGroup> groups(const Json& status) {
  auto read = read_allocation(status, Decoding::strict);
  if (Trouble* trouble = trouble_of(read)) FAIL(trouble->text);
  return std::get<std::vector<ConfigGroup>>(read);
}

std::string refusal(const Json& status) {
  auto read = read_allocation(status, Decoding::strict);
  Trouble* trouble = trouble_of(read);
  REQUIRE(trouble);
  CHECK(trouble->kind == Trouble::Kind::permanent);
  return trouble->text;
}

}  // namespace

TEST_CASE("a claim of a workload template gives one channel with its domain",
          "[plugin][allocation]") {
  auto read = groups(channel_status(domain_uid, "All"));
  REQUIRE(read.size() == 1);
  CHECK(read[0].is_channel());
  CHECK(read[0].domain().value == domain_uid);
  CHECK(read[0].devices.at(0).device == "channel-0");
}

TEST_CASE("the claim's config beats the class's, a later one an earlier one",
          "[plugin][allocation]") {
  auto with = [](std::string domain, std::string_view source) {
    return config(parameters(channel_config_kind, domain), source);
  };
  CHECK(
      groups(status(JsonArray{result()}, JsonArray{with("a", "FromClaim"), with("b", "FromClass")}))
          .at(0)
          .domain()
          .value == "a");
  CHECK(
      groups(status(JsonArray{result()}, JsonArray{with("a", "FromClaim"), with("b", "FromClaim")}))
          .at(0)
          .domain()
          .value == "b");
}

TEST_CASE("a config for a request also holds for its subrequests", "[plugin][allocation]") {
  auto read = groups(status(JsonArray{result("channel-0", "channel/first")},
                            JsonArray{config(parameters(channel_config_kind, domain_uid))}));
  CHECK(read.at(0).devices.at(0).request == "channel/first");
}

TEST_CASE("a config without requests applies where its kind fits", "[plugin][allocation]") {
  auto read =
      groups(status(JsonArray{result()},
                    JsonArray{config(parameters(channel_config_kind, domain_uid), "FromClaim", {}),
                              config(parameters(daemon_config_kind, "x"), "FromClaim", {})}));
  CHECK(read.at(0).domain().value == domain_uid);
}

TEST_CASE("devices and configs of other drivers are none of our business", "[plugin][allocation]") {
  Json foreign = {
      {"request", "gpu"}, {"driver", "gpu.nvidia.com"}, {"pool", "p"}, {"device", "gpu-0"}};
  Json foreign_config = {{"source", "FromClaim"},
                         {"opaque", {{"driver", "gpu.nvidia.com"}, {"parameters", {{"x", 1}}}}}};
  CHECK(groups(status(JsonArray{foreign}, JsonArray{foreign_config})).empty());
  CHECK(groups(JsonObject{}).empty());
}

TEST_CASE("what is wrong with a claim's content is said at once", "[plugin][allocation]") {
  struct Row {
    const char* why;
    Json status;
    const char* part;
  };
  Json good = config(parameters(channel_config_kind, domain_uid));
  Json unexpected = good;
  unexpected.at("opaque").at("parameters").get_object()["unexpectedField"] = 1;
  const std::vector<Row> rows{
      {"unknown field", status(JsonArray{result()}, JsonArray{unexpected}),
       "strict decoding error: unknown field \"unexpectedField\""},
      {"unknown device", status(JsonArray{result("channel-4096")}, JsonArray{good}),
       "channel-4096"},
      {"hostile device", status(JsonArray{result("../x")}, JsonArray{good}), "../x"},
      {"unknown source",
       status(JsonArray{result()},
              JsonArray{config(parameters(channel_config_kind, "d"), "FromMars")}),
       "FromMars"},
      {"no opaque part", status(JsonArray{result()}, JsonArray{{{"source", "FromClaim"}}}),
       "opaque"},
      {"wrong kind for the device",
       status(JsonArray{result()}, JsonArray{config(parameters(daemon_config_kind, domain_uid))}),
       "cannot apply ComputeDomainDaemonConfig to request: channel"},
      {"no config", status(JsonArray{result()}, JsonArray{}), "no device config"},
      {"empty domainID",
       status(JsonArray{result()}, JsonArray{config(parameters(channel_config_kind, ""))}),
       "domainID cannot be empty"},
      {"hostile domainID",
       status(JsonArray{result()}, JsonArray{config(parameters(channel_config_kind, "../../x"))}),
       "not a valid single path component"},
      {"two devices for one config",
       status(JsonArray{result("channel-0"), result("channel-1")}, JsonArray{good}),
       "expected exactly one"},
  };
  for (const Row& row : rows) {
    INFO(row.why);
    CHECK_THAT(refusal(row.status), Catch::Contains(row.part));
  }
}

TEST_CASE("undoing finds the stored domain, and skips one that is no legal path",
          "[plugin][allocation]") {
  CHECK(stored_domain(channel_status()).value == domain_uid);
  CHECK(stored_domain(channel_status("../x")).empty());
  CHECK(stored_domain(JsonObject{}).empty());
  CHECK(stored_domain(Json("text")).empty());
}
