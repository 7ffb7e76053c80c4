// What the controller says of settings that do not fit.
#include "roles/controller/config.hpp"

#include "catch.hpp"

using namespace nvdra;
using namespace nvdra::roles::controller;

namespace {

Result<Config> configured(const std::vector<std::string>& arguments, Environment changed = {}) {
  Environment environment = std::move(changed);
  environment.insert({{"POD_NAME", "p"}, {"IMAGE_NAME", "i"}, {"LOG_VERBOSITY_CD_DAEMON", "4"}});
  const Result<Args> args = parse_args(flags(), arguments, environment);
  if (!args) return args.failure();
  return read_config(*args, environment);
}

}  // namespace

TEST_CASE("what a controller cannot do without may not be empty", "[controller][config]") {
  CHECK(configured({}));
  const std::string name = GENERATE("POD_NAME", "IMAGE_NAME");
  const Result<Config> config = configured({}, {{name, ""}});
  REQUIRE_FALSE(config);
  CHECK_THAT(config.error().text(), Catch::Contains(name) && Catch::Contains("is empty"));
}

TEST_CASE("a path of metrics that nobody could ask for is refused", "[controller][config]") {
  CHECK(configured({"--metrics-path=/m"})->metrics_path == "/m");
  CHECK(configured({"--metrics-path="})->metrics_path.empty());
  const std::string path = GENERATE("metrics", "/a b", "/m?x=1", "/readyz", "/healthz");
  const Result<Config> config = configured({"--metrics-path=" + path});
  REQUIRE_FALSE(config);
  CHECK_THAT(config.error().text(),
             Catch::Contains("METRICS_PATH") && Catch::Contains("\"" + path + "\""));
}
