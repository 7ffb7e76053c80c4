#include "imex/driver_version.hpp"

#include "catch.hpp"

namespace nvdra::imex {

TEST_CASE("driver versions compare number by number", "[imex][driver_version]") {
  const auto since = parse_driver_version(host_names_since);
  REQUIRE(since);
  struct Row {
    const char* text;
    std::strong_ordering order;
  };
  const Row row = GENERATE(values<Row>({
      {"570.158.01", std::strong_ordering::equal},
      {"570.158.1", std::strong_ordering::equal},
      {"v570.158.01", std::strong_ordering::equal},
      {"570.158.01.0", std::strong_ordering::equal},
      {"570.158.01-open\n", std::strong_ordering::equal},
      {"570.158", std::strong_ordering::less},
      {"570.86.15", std::strong_ordering::less},
      {"565.200.99", std::strong_ordering::less},
      {"570.172.08", std::strong_ordering::greater},
      {"1000.0", std::strong_ordering::greater},
  }));
  INFO(row.text);
  const auto version = parse_driver_version(row.text);
  REQUIRE(version);
  CHECK((*version <=> *since) == row.order);
}

TEST_CASE("text that is no driver version is quoted", "[imex][driver_version]") {
  for (const char* text : {"", "570", "570.", "N/A", "v", "0570.1", "570..1", "-1.2"}) {
    INFO(text);
    const auto version = parse_driver_version(text);
    REQUIRE_FALSE(version);
    CHECK_THAT(version.error().text(), Catch::Contains("\"" + std::string(text) + "\""));
  }
}

}  // namespace nvdra::imex
