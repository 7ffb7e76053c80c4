#include "imex/capability.hpp"

#include "catch.hpp"
#include "imex/data.hpp"

namespace nvdra::imex {

TEST_CASE("capability files give minor and mode, both decimal", "[imex][capability]") {
  const auto real = parse_capability(sample("capability.txt"));
  REQUIRE(real);
  CHECK(*real == Capability{.minor = 4323, .mode = 0400});
  const auto mock = parse_capability(sample("capability-mock.txt"));
  REQUIRE(mock);
  CHECK(*mock == Capability{.minor = 512, .mode = 0666});
}

TEST_CASE("unknown lines of a capability file are passed over", "[imex][capability]") {
  const auto capability =
      parse_capability("nonsense\nDeviceFileColour: red\nDeviceFileMode:256\n\nDeviceFileMinor: 3");
  REQUIRE(capability);
  CHECK(capability->minor == 3);
}

TEST_CASE("what is wrong with a capability file is named", "[imex][capability]") {
  struct Row {
    const char* why;
    const char* text;
    const char* named;
  };
  const Row row = GENERATE(values<Row>({
      {"empty", "", "no line DeviceFileMinor"},
      {"no mode", "DeviceFileMinor: 1\n", "no line DeviceFileMode"},
      {"octal with prefix", "DeviceFileMinor: 1\nDeviceFileMode: 0x1a\n", "\"0x1a\""},
      {"negative", "DeviceFileMinor: -1\nDeviceFileMode: 1\n", "DeviceFileMinor: \"-1\""},
      {"mode too large", "DeviceFileMinor: 1\nDeviceFileMode: 4096\n", "no file mode"},
  }));
  INFO(row.why);
  const auto capability = parse_capability(row.text, "/some/file");
  REQUIRE_FALSE(capability);
  CHECK_THAT(capability.error().text(), Catch::StartsWith("/some/file has"));
  CHECK_THAT(capability.error().text(), Catch::Contains(row.named));
}

TEST_CASE("the capability's device lies in /dev/nvidia-caps", "[imex][capability]") {
  CHECK(capability_device_path(4323) == "/dev/nvidia-caps/nvidia-cap4323");
}

}  // namespace nvdra::imex
