#include "roles/common/imex_mode.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::roles;

TEST_CASE("mode and isolation are checked together with the gate", "[roles][imex_mode]") {
  struct Row {
    const char* mode;
    const char* isolation;
    bool gate;
    const char* error;  // a part of it; nullptr = accepted
  };
  const Row row = GENERATE(values<Row>({
      {"driverManaged", "", false, nullptr},
      {"driverManaged", "domain", true, nullptr},
      {"driverManaged", "channel", false, "not supported yet"},
      {"driverManaged", "x", false, "unknown IMEX isolation \"x\""},
      {"hostManaged", "domain", false, "HostManagedIMEXDaemon"},
      {"hostManaged", "channel", false, "HostManagedIMEXDaemon"},
      {"hostManaged", "", true, nullptr},
      {"hostManaged", "channel", true, "not supported yet"},
      {"", "domain", true, "unknown IMEX mode \"\""},
      {"HostManaged", "domain", true, "driverManaged or hostManaged"},
  }));
  INFO(row.mode << " / " << row.isolation);
  FeatureGates gates;
  if (row.gate) REQUIRE(gates.set("HostManagedIMEXDaemon=true"));
  auto mode = imex_mode(row.mode, row.isolation, gates);
  CHECK(mode.has_value() == (row.error == nullptr));
  if (!mode) CHECK_THAT(mode.error().text(), Catch::Contains(row.error));
}

TEST_CASE("hostManaged starts although a gate it governs is off", "[roles][imex_mode]") {
  FeatureGates gates;
  REQUIRE(gates.set("IMEXDaemonsWithDNSNames=false"));
  CHECK_FALSE(gates.check());
  force_gates("hostManaged", gates);
  CHECK(gates.check());
  CHECK_FALSE(gates.enabled("ComputeDomainCliques"));
}
