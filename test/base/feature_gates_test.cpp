#include "base/feature_gates.hpp"

#include "catch.hpp"

using namespace nvdra;

namespace {

FeatureGates with(std::string_view text) {
  FeatureGates gates;
  Result<void> set = gates.set(text);
  if (!set) FAIL(set.error().text());
  return gates;
}

std::string refusal(std::string_view text) {
  FeatureGates gates;
  Result<void> set = gates.set(text);
  return set ? "accepted" : set.error().text();
}

const std::string defaults =
    "AllAlpha=false,AllBeta=false,ComputeDomainCliques=true,ConsumableShares=false,"
    "ContextualLogging=true,CrashOnNVLinkFabricErrors=true,DRAListTypeAttributes=false,"
    "DeviceMetadata=false,DynamicMIG=false,FabricManagerPartitioning=false,"
    "HostManagedIMEXDaemon=false,IMEXDaemonsWithDNSNames=true,LoggingAlphaOptions=false,"
    "LoggingBetaOptions=true,MPSSupport=false,NVMLDeviceHealthCheck=false,"
    "PassthroughSupport=false,TimeSlicingSettings=false,";

}  // namespace

TEST_CASE("every gate has its default, and the text form sets them again", "[base][gates]") {
  CHECK(FeatureGates().to_text() == defaults);
  CHECK(with(defaults).to_text() == defaults);
  CHECK(FeatureGates().check());
}

TEST_CASE("the start-up form shows each gate without spaces", "[base][gates]") {
  std::string text = with("DynamicMIG=true").to_json();
  CHECK(text.starts_with("{\"AllAlpha\":false,\"AllBeta\":false,"));
  CHECK(text.find("\"MPSSupport\":false") != std::string::npos);
  CHECK(text.find("\"DynamicMIG\":true") != std::string::npos);
}

TEST_CASE("empty items and blanks are legal, a later setting overrides", "[base][gates]") {
  FeatureGates gates = with(" MPSSupport = true ,, DynamicMIG=T,");
  CHECK(gates.enabled("MPSSupport"));
  CHECK(gates.enabled("DynamicMIG"));
  REQUIRE(gates.set("DynamicMIG=0"));
  CHECK(gates.enabled("MPSSupport"));
  CHECK_FALSE(gates.enabled("DynamicMIG"));
  REQUIRE(gates.set(""));
  CHECK(gates.enabled("MPSSupport"));
}

TEST_CASE("explicit settings beat AllAlpha and AllBeta in either order", "[base][gates]") {
  std::string text = GENERATE("AllBeta=false,ComputeDomainCliques=true",
                              "ComputeDomainCliques=true,AllBeta=false");
  FeatureGates gates = with(text);
  CHECK(gates.enabled("ComputeDomainCliques"));
  CHECK_FALSE(gates.enabled("IMEXDaemonsWithDNSNames"));
  CHECK_FALSE(gates.enabled("CrashOnNVLinkFabricErrors"));
  CHECK_FALSE(gates.enabled("LoggingBetaOptions"));
  CHECK(gates.enabled("ContextualLogging"));
  CHECK_FALSE(gates.enabled("MPSSupport"));
  CHECK(with("AllAlpha=true").enabled("LoggingAlphaOptions"));
  CHECK_FALSE(with("AllAlpha=true,MPSSupport=false").enabled("MPSSupport"));
}

TEST_CASE("a bad item is refused by name and nothing is set", "[base][gates]") {
  struct Row {
    std::string text, sentence;
  };
  const Row row = GENERATE(values<Row>({
      {"MPSSupport",
       "feature gate item \"MPSSupport\" has no value, expected MPSSupport=true or "
       "MPSSupport=false"},
      {"MPSSupport=yes",
       "feature gate item \"MPSSupport=yes\" has no boolean value, expected "
       "MPSSupport=true or MPSSupport=false"},
      {"MPSSuport=true", "unknown feature gate \"MPSSuport\", did you mean MPSSupport?"},
      {"mpssupport=true", "unknown feature gate \"mpssupport\", did you mean MPSSupport?"},
  }));
  CHECK(refusal("DynamicMIG=true," + row.text) == row.sentence);
  FeatureGates gates;
  REQUIRE_FALSE(gates.set("DynamicMIG=true," + row.text));
  CHECK(gates.to_text() == defaults);
  CHECK(refusal("Qqqqq=true").starts_with("unknown feature gate \"Qqqqq\", known are AllAlpha, "));
}

TEST_CASE("gates that need or exclude each other are checked", "[base][gates]") {
  struct Row {
    std::string text, sentence;
  };
  const Row row = GENERATE(values<Row>({
      {"IMEXDaemonsWithDNSNames=false",
       "feature gate ComputeDomainCliques requires IMEXDaemonsWithDNSNames to also be enabled"},
      {"DeviceMetadata=true",
       "feature gate DeviceMetadata requires PassthroughSupport to also be enabled"},
      {"DynamicMIG=true,PassthroughSupport=true",
       "feature gate DynamicMIG is currently mutually exclusive with PassthroughSupport"},
      {"DynamicMIG=true,MPSSupport=true",
       "feature gate DynamicMIG is currently mutually exclusive with MPSSupport"},
      {"PassthroughSupport=true,NVMLDeviceHealthCheck=true",
       "feature gate PassthroughSupport is currently mutually exclusive with "
       "NVMLDeviceHealthCheck"},
  }));
  Result<void> checked = with(row.text).check();
  REQUIRE_FALSE(checked);
  CHECK(checked.error().text() == row.sentence);
}

TEST_CASE("combinations that are legal pass the check", "[base][gates]") {
  CHECK(with("IMEXDaemonsWithDNSNames=false,ComputeDomainCliques=false").check());
  CHECK(with("AllBeta=false").check());
  CHECK(with("DeviceMetadata=true,PassthroughSupport=true").check());
  CHECK(with("DynamicMIG=true,NVMLDeviceHealthCheck=true").check());
  CHECK_FALSE(with("AllAlpha=true").check());
}

TEST_CASE("a forced gate overrides what was set and satisfies the check", "[base][gates]") {
  FeatureGates gates = with("IMEXDaemonsWithDNSNames=false,ComputeDomainCliques=true");
  REQUIRE_FALSE(gates.check());
  gates.force("IMEXDaemonsWithDNSNames", false);
  gates.force("ComputeDomainCliques", false);
  CHECK(gates.check());
  CHECK_FALSE(gates.enabled("ComputeDomainCliques"));
}
