#include "base/common_flags.hpp"

#include "base/log.hpp"
#include "base/version.hpp"
#include "catch.hpp"
#include "fake/captured_log.hpp"

#include <array>

using namespace nvdra;

namespace {

constexpr std::array own{
    Flag{.name = "node-name", .environment = "NODE_NAME"},
    Flag{.name = "max-nodes-per-imex-domain", .kind = FlagKind::integer, .otherwise = "18"},
    Flag{.name = "additional-namespaces", .kind = FlagKind::list},
    Flag{.name = "http-endpoint"},
    Flag{.name = "pod-uid"},
};

using Words = std::vector<std::string>;

Args parsed(const Words& words, const Environment& environment = {}) {
  std::vector<Flag> flags = with_common_flags(own);
  Result<Args> args = parse_args(flags, words, environment);
  if (!args) FAIL(args.error().text());
  return *std::move(args);
}

// Applies, then restores what the other tests expect.
std::string applied(const Words& words, const Environment& environment = {}) {
  Result<void> done = apply_logging(parsed(words, environment));
  REQUIRE(log::configure({}));
  return done ? "applied" : done.error().text();
}

bool shown_at(const Words& words, int verbosity) {
  fake::CapturedLog log;
  REQUIRE(apply_logging(parsed(words)));
  return log::enabled(verbosity, __FILE__);
}

}  // namespace

TEST_CASE("the verbosity comes from -v, from V, and per file from vmodule",
          "[base][common_flags]") {
  CHECK(shown_at({"-v", "6"}, 6));
  CHECK_FALSE(shown_at({"-v", "6"}, 7));
  CHECK_FALSE(shown_at({}, 1));
  CHECK(shown_at({"--vmodule=common_flags_test=4"}, 4));
  CHECK(shown_at({"--vmodule=other=9", "--vmodule", "common_*=4"}, 4));
  CHECK(parsed({}, {{"V", "3"}}).integer("v") == 3);
}

TEST_CASE("logging flags that make no sense are refused with what would", "[base][common_flags]") {
  struct Row {
    Words words;
    std::string sentence;
  };
  const Row row = GENERATE(values<Row>({
      {{"-v", "-1"}, "-v (V) is -1: use a number from 0 to 2147483647"},
      {{"-v", "2147483648"}, "-v (V) is 2147483648: use a number from 0 to 2147483647"},
      {{"--logging-format=xml"}, "--logging-format (LOGGING_FORMAT) is \"xml\": use text or json"},
      {{"--log-flush-frequency=0"}, "--log-flush-frequency (LOG_FLUSH_FREQUENCY) must be above 0"},
      {{"--logging-format=json", "--vmodule=a=1"},
       "--vmodule (VMODULE) works with --logging-format=text only: leave one of them out"},
      {{"--vmodule=a"},
       "item \"a\" of vmodule is not pattern=N with N from 0 to 2147483647, for example "
       "reflector=4"},
      {{"--log-text-split-stream"},
       "--log-text-split-stream (LOG_TEXT_SPLIT_STREAM) needs the feature gate "
       "LoggingAlphaOptions: set --feature-gates=LoggingAlphaOptions=true"},
      {{"--log-json-info-buffer-size=4Ki"},
       "--log-json-info-buffer-size (LOG_JSON_INFO_BUFFER_SIZE) needs the feature gate "
       "LoggingAlphaOptions: set --feature-gates=LoggingAlphaOptions=true"},
  }));
  CHECK(applied(row.words) == row.sentence);
}

TEST_CASE("what is off needs no gate, and with the gate everything is accepted",
          "[base][common_flags]") {
  CHECK(applied({"--log-text-split-stream=0", "--log-flush-frequency=1s"}) == "applied");
  CHECK(applied({}, {{"LOG_JSON_SPLIT_STREAM", ""}, {"LOGGING_FORMAT", ""}}) == "applied");
  CHECK(applied({"--log-text-info-buffer-size=1", "--feature-gates=LoggingAlphaOptions=true"}) ==
        "applied");
  CHECK(applied({"--log-text-split-stream", "--feature-gates=MPSSupport=true"},
                {{"FEATURE_GATES", "LoggingAlphaOptions=true"}}) == "applied");
  CHECK(applied({"--logging-format=json"}) == "applied");
}

TEST_CASE("the logging configuration is logged at level 6", "[base][common_flags]") {
  fake::CapturedLog log;
  REQUIRE(apply_logging(parsed({"-v=5"})));
  CHECK(log.lines().empty());
  REQUIRE(apply_logging(parsed({"-v=6"})));
  CHECK(log.has("\"Logging configuration\" verbosity=6"));
}

TEST_CASE("gates of the environment and of the command line are merged, the latter on top",
          "[base][common_flags]") {
  Environment environment{{"FEATURE_GATES", "MPSSupport=true,DynamicMIG=true,"}};
  Words words{"--feature-gates=DynamicMIG=false", "--feature-gates", "DeviceMetadata=true"};
  Result<FeatureGates> gates = gates_of(parsed(words, environment), environment);
  REQUIRE(gates);
  CHECK(gates->enabled("MPSSupport"));
  CHECK_FALSE(gates->enabled("DynamicMIG"));
  CHECK(gates->enabled("DeviceMetadata"));
  Environment bad{{"FEATURE_GATES", "Nope=true"}};
  CHECK_FALSE(gates_of(parsed({}, bad), bad));
}

TEST_CASE("the start-up record holds what readers of the log look for", "[base][common_flags]") {
  Args args = parsed({"--node-name=n1", "-v=4", "--additional-namespaces=a,b"});
  std::string dump = startup_dump(args, FeatureGates());
  INFO(dump);
  for (const char* fragment :
       {"nodeName: n1", "Verbosity: 4", "klogVerbosity: 4", "maxNodesPerIMEXDomain: 18",
        "additionalNamespaces: a,b", "\"MPSSupport\":false",
        "httpEndpoint:", "podUID:", "kubeAPIBurst:", "featureGates:"})
    CHECK(dump.find(fragment) != std::string::npos);
  CHECK(dump.starts_with("Commit: " + std::string(commit()) + " "));
}
