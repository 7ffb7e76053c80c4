#include "imex/device_major.hpp"

#include "catch.hpp"
#include "imex/channel.hpp"
#include "imex/data.hpp"

#include <sys/sysmacros.h>

namespace nvdra::imex {

TEST_CASE("every published listing of /proc/devices gives both majors", "[imex][device_major]") {
  struct Row {
    const char* file;
    std::uint32_t channels;
    std::optional<std::uint32_t> capabilities;
  };
  const Row row = GENERATE(values<Row>({
      {"devices-full.txt", 236, 235},
      {"devices-heading-only.txt", 234, {}},
      {"devices-two-lines.txt", 498, 497},
      {"devices-five-lines.txt", 236, 235},
  }));
  INFO(row.file);
  const std::string text = sample(row.file);

  const auto channels = parse_device_major(text, channel_class);
  REQUIRE(channels);
  CHECK(*channels == row.channels);
  const auto capabilities = parse_device_major(text, capability_class);
  CHECK(capabilities.has_value() == row.capabilities.has_value());
  if (row.capabilities) CHECK(*capabilities == *row.capabilities);
}

TEST_CASE("a class name must match as a whole word", "[imex][device_major]") {
  CHECK_FALSE(
      parse_device_major("Character devices:\n498 nvidia-caps-imex-channels\n", "nvidia-caps"));
  CHECK_FALSE(parse_device_major("Character devices:\n498 nvidia-caps\n", channel_class));
  CHECK_FALSE(parse_device_major("Character devices:\n498 x nvidia-caps\n", "nvidia-caps"));
}

TEST_CASE("a block device of the same name is no channel class", "[imex][device_major]") {
  CHECK_FALSE(parse_device_major("Character devices:\n  1 mem\n\nBlock devices:\n240 nvidia-caps\n",
                                 "nvidia-caps"));
}

TEST_CASE("a missing class is explained with file, class and remedy", "[imex][device_major]") {
  const auto major = parse_device_major("Character devices:\n  1 mem\n", channel_class, "/alt");
  REQUIRE_FALSE(major);
  const std::string text = major.error().text();
  CHECK_THAT(text, Catch::StartsWith("/alt lists no character device class "
                                     "nvidia-caps-imex-channels"));
  CHECK_THAT(text, Catch::Contains("not loaded") && Catch::Contains("ImexChannelCount"));
}

TEST_CASE("a number outside 32 bits is refused with its line", "[imex][device_major]") {
  const auto major = parse_device_major("4294967296 nvidia-caps\n", "nvidia-caps");
  REQUIRE_FALSE(major);
  CHECK_THAT(major.error().text(), Catch::Contains("\"4294967296 nvidia-caps\""));
}

TEST_CASE("the running kernel's own list is readable", "[imex][device_major]") {
  const auto major = read_device_major("/proc/devices", "mem");
  REQUIRE(major);
  CHECK(*major == 1);
}

TEST_CASE("a channel number gives its path, device number and name", "[imex][channel]") {
  const Channel last = channel(2047, 236);
  CHECK(last.path == "/dev/nvidia-caps-imex-channels/channel2047");
  CHECK(major(last.device) == 236);
  CHECK(minor(last.device) == 2047);
  CHECK(channel_device_name(0) == "channel-0");
}

TEST_CASE("only the names of the 2048 channels are channel names", "[imex][channel]") {
  CHECK(channel_number("channel-0") == 0u);
  CHECK(channel_number("channel-2047") == 2047u);
  for (const char* other : {"channel-2048", "channel-", "channel-01", "channel--1", "channel-1 ",
                            "daemon-0", "channel0", "channel-4294967296"}) {
    INFO(other);
    CHECK_FALSE(channel_number(other));
  }
}

}  // namespace nvdra::imex
