#include "roles/controller/burst.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::roles::controller;

TEST_CASE("a single event is told soon, those that follow it are gathered", "[controller][burst]") {
  Burst burst;
  Instant now{};
  CHECK(burst.gather("a", now) == Burst::single);
  CHECK(burst.gather("b", now) == Burst::single);
  for (int i = 0; i < 5; ++i) CHECK(burst.gather("a", now += 100ms) == Burst::many);
  CHECK(burst.gather("b", now) == Burst::many);
  CHECK(burst.gather("a", now + Burst::memory + 1ms) == Burst::single);
}
