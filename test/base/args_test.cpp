#include "base/args.hpp"

#include "catch.hpp"

#include <array>

using namespace nvdra;

namespace {

constexpr std::array flags{
    Flag{.name = "node-name", .environment = "NODE_NAME", .help = "the node", .required = true},
    Flag{.name = "namespace", .environment = "NAMESPACE", .otherwise = "default"},
    Flag{.name = "driver-root",
         .environment = "DRIVER_ROOT,HOST_DRIVER_ROOT",
         .otherwise = "/",
         .help = "the root",
         .alias = "host_driver-root"},
    Flag{.name = "port", .environment = "PORT", .kind = FlagKind::integer, .otherwise = "-1"},
    Flag{.name = "qps", .environment = "QPS", .kind = FlagKind::real, .otherwise = "5"},
    Flag{.name = "on", .environment = "ON", .kind = FlagKind::boolean, .otherwise = "true"},
    Flag{.name = "period", .environment = "PERIOD", .kind = FlagKind::duration, .otherwise = "2s"},
    Flag{.name = "names", .environment = "NAMES", .kind = FlagKind::list, .otherwise = "a,b"},
    Flag{.name = "v", .environment = "V", .kind = FlagKind::integer, .otherwise = "0"},
    Flag{.name = "gates", .environment = "GATES", .kind = FlagKind::generic, .joins = true},
    Flag{.name = "help", .kind = FlagKind::boolean, .help = "print this", .alias = "h"},
};

using Words = std::vector<std::string>;

Args parsed(const Words& words, const Environment& environment = {}) {
  Environment all = environment;
  all.emplace("NODE_NAME", "n1");
  Result<Args> args = parse_args(flags, words, all);
  if (!args) FAIL(args.error().text());
  return *std::move(args);
}

std::string refusal(const Words& words, const Environment& environment = {}) {
  Result<Args> args = parse_args(flags, words, environment);
  return args ? "accepted" : args.error().text();
}

}  // namespace

TEST_CASE("the command line wins over the environment, that over the default", "[base][args]") {
  CHECK(parsed({}).text("namespace") == "default");
  CHECK(parsed({}, {{"NAMESPACE", "env"}}).text("namespace") == "env");
  CHECK(parsed({"--namespace", "line"}, {{"NAMESPACE", "env"}}).text("namespace") == "line");
  CHECK_FALSE(parsed({}).given("namespace"));
  CHECK(parsed({}, {{"NAMESPACE", "env"}}).given("namespace"));
  Args both = parsed({"--gates", "A=true"}, {{"GATES", "B=true"}});
  CHECK(both.text("gates") == "A=true");
  CHECK(both.environment_text("gates") == "B=true");
}

TEST_CASE("every spelling of a flag on the command line is understood", "[base][args]") {
  struct Row {
    const char* why;
    Words words;
    const char* flag;
    std::string value;
  };
  const Row row = GENERATE(values<Row>({
      {"equals sign", {"--namespace=x"}, "namespace", "x"},
      {"next word", {"--namespace", "x"}, "namespace", "x"},
      {"one dash", {"-namespace", "x"}, "namespace", "x"},
      {"the short one", {"-v", "6"}, "v", "6"},
      {"short with equals sign", {"-v=6"}, "v", "6"},
      {"short with two dashes", {"--v=6"}, "v", "6"},
      {"a value that looks like a flag", {"--port", "-1"}, "port", "-1"},
      {"an equals sign in the value", {"--gates=A=true"}, "gates", "A=true"},
      {"the empty value", {"--namespace="}, "namespace", ""},
      {"a bool alone", {"--on"}, "on", "true"},
      {"a bool with a value", {"--on=false"}, "on", "false"},
      {"an alias", {"--host_driver-root", "/x"}, "driver-root", "/x"},
      {"the last one wins", {"--port=1", "--port=2"}, "port", "2"},
      {"a repeated list is joined", {"--names=c", "--names", "d,e"}, "names", "c,d,e"},
      {"a repeated joining flag too",
       {"--gates=A=true", "--gates=B=true"},
       "gates",
       "A=true,B=true"},
  }));
  INFO(row.why);
  CHECK(parsed(row.words).text(row.flag) == row.value);
}

TEST_CASE("a set but empty variable means what its kind says", "[base][args]") {
  Args args = parsed({}, {{"NAMESPACE", ""},
                          {"PORT", ""},
                          {"QPS", ""},
                          {"ON", ""},
                          {"PERIOD", ""},
                          {"NAMES", ""},
                          {"GATES", ""}});
  CHECK(args.text("namespace").empty());
  CHECK(args.given("namespace"));
  CHECK(args.integer("port") == -1);
  CHECK_FALSE(args.given("port"));
  CHECK(args.real("qps") == 5.0);
  CHECK_FALSE(args.boolean("on"));
  CHECK(args.duration("period") == std::chrono::seconds(2));
  CHECK(args.list("names").empty());
  CHECK_FALSE(args.given("gates"));
}

TEST_CASE("the first variable of several that is set wins", "[base][args]") {
  CHECK(parsed({}, {{"DRIVER_ROOT", "/a"}, {"HOST_DRIVER_ROOT", "/b"}}).text("driver-root") ==
        "/a");
  CHECK(parsed({}, {{"HOST_DRIVER_ROOT", "/b"}}).text("driver-root") == "/b");
}

TEST_CASE("list items are trimmed and empty ones dropped", "[base][args]") {
  CHECK(parsed({"--names= a , ,b,"}).list("names") == Words{"a", "b"});
}

TEST_CASE("what is wrong on the command line or in the environment is one sentence",
          "[base][args]") {
  struct Row {
    Words words;
    Environment environment;
    std::string sentence;
  };
  const Row row = GENERATE(values<Row>({
      {{"--node-name=a", "--namespce=x"}, {}, "unknown flag --namespce, did you mean --namespace?"},
      {{"--zzzzzzzz"}, {}, "unknown flag --zzzzzzzz, --help lists the flags"},
      {{"--node-name=a", "run"}, {}, "unexpected argument \"run\": this program takes flags only"},
      {{}, {}, "flag --node-name is required: give it on the command line or set NODE_NAME"},
      {{"--node-name"}, {}, "flag --node-name needs a value: --node-name=VALUE"},
      {{"--port", "x"}, {}, "flag --port: \"x\" is not an integer, for example 10"},
      {{"--port="}, {}, "flag --port: \"\" is not an integer, for example 10"},
      {{"--port=99999999999999999999"},
       {},
       "flag --port: \"99999999999999999999\" is not an integer, for example 10"},
      {{}, {{"QPS", "nan"}}, "variable QPS: \"nan\" is not a number, for example 2.5"},
      {{}, {{"ON", "yes"}}, "variable ON: \"yes\" is not true or false"},
      {{"--on=maybe"}, {}, "flag --on: \"maybe\" is not true or false"},
      {{"--period=5"}, {}, "flag --period: \"5\" is not a duration, for example 1m30s"},
  }));
  Environment environment = row.environment;
  if (!environment.empty()) environment.emplace("NODE_NAME", "n");
  CHECK(refusal(row.words, environment) == row.sentence);
}

TEST_CASE("arguments that are no flags are collected where they are wanted", "[base][args]") {
  Words positional;
  Words words{"--node-name=a", "run", "-v", "3", "--", "--not-a-flag", "x"};
  Result<Args> args = parse_args(flags, words, {}, &positional);
  REQUIRE(args);
  CHECK(args->integer("v") == 3);
  CHECK(positional == Words{"run", "--not-a-flag", "x"});
}

TEST_CASE("who asks for help is not told about missing flags or bad variables", "[base][args]") {
  Words words{"-h"};
  Result<Args> args = parse_args(flags, words, {{"PORT", "x"}});
  REQUIRE(args);
  CHECK(args->boolean("help"));
}

TEST_CASE("durations are read as Go reads them", "[base][args]") {
  using namespace std::chrono_literals;
  struct Row {
    const char* text;
    std::chrono::nanoseconds expected;
  };
  const Row row = GENERATE(values<Row>({
      {"0", 0ns},
      {"15s", 15s},
      {"1h2m3.5s", 1h + 2min + 3500ms},
      {"100ms", 100ms},
      {"1.5h", 90min},
      {".5s", 500ms},
      {"5.s", 5s},
      {"7us", 7us},
      {"7\xc2\xb5s", 7us},
      {"7\xce\xbcs", 7us},
      {"-3m", -3min},
      {"+1ns", 1ns},
      {"0.000000001s", 1ns},
  }));
  INFO(row.text);
  Result<std::chrono::nanoseconds> got = parse_duration(row.text);
  REQUIRE(got);
  CHECK(*got == row.expected);
}

TEST_CASE("what is no duration is refused", "[base][args]") {
  std::string text = GENERATE("", "5", "s", ".s", "1d", "1 s", "1s ", "--1s", "+-1s", "9999999999h",
                              "2562047h2562047h", "1..5s", "1e3s");
  INFO(text);
  CHECK_FALSE(parse_duration(text));
}

TEST_CASE("booleans are spelled as in Go", "[base][args]") {
  for (const char* yes : {"1", "t", "T", "TRUE", "true", "True"}) CHECK(*parse_bool(yes));
  for (const char* no : {"0", "f", "F", "FALSE", "false", "False"}) CHECK_FALSE(*parse_bool(no));
  for (const char* neither : {"", "yes", "tRUE", " true", "2"}) CHECK_FALSE(parse_bool(neither));
}

TEST_CASE("the nearest word is one that a slip of the finger could have meant", "[base][args]") {
  constexpr std::array<std::string_view, 3> words{"controller", "daemon", "kubelet-plugin"};
  CHECK(nearest("deamon", words) == "daemon");
  CHECK(nearest("Kubelet_plugin", words) == "kubelet-plugin");
  CHECK(nearest("webhook", words).empty());
  CHECK(nearest("x", words).empty());
}

TEST_CASE("the help names flag, alias, default and variable", "[base][args]") {
  std::string help = flags_help(flags);
  INFO(help);
  CHECK(help.find("--driver-root, --host_driver-root  the root (default /) "
                  "[$DRIVER_ROOT,HOST_DRIVER_ROOT]\n") != std::string::npos);
  CHECK(help.find("the node (required) [$NODE_NAME]\n") != std::string::npos);
  CHECK(help.find("  -v ") != std::string::npos);
}

TEST_CASE("the environment of the process is what the kernel gave it", "[base][args]") {
  ::setenv("NVDRA_ARGS_TEST", "a=b", 1);
  CHECK(process_environment().at("NVDRA_ARGS_TEST") == "a=b");
  ::unsetenv("NVDRA_ARGS_TEST");
  CHECK_FALSE(process_environment().contains("NVDRA_ARGS_TEST"));
}
