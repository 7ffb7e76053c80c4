#include "roles/daemon/config.hpp"

#include "catch.hpp"
#include "roles/daemon/herald.hpp"

using namespace nvdra;
using namespace nvdra::roles::daemon;

namespace {

const Environment usual{{"COMPUTE_DOMAIN_UUID", "0f8fad5b-d9cb-469f-a165-70867728950e"},
                        {"COMPUTE_DOMAIN_NAME", "d"},
                        {"COMPUTE_DOMAIN_NAMESPACE", "team"},
                        {"CLIQUE_ID", "11111111-2222-3333-4444-555555555555.7"},
                        {"NODE_NAME", "node-a"},
                        {"POD_IP", "10.0.0.1"},
                        {"POD_UID", "7c9e6679-7425-40de-944b-e07fc1f90ae7"},
                        {"POD_NAME", "p"},
                        {"POD_NAMESPACE", "nvdra"},
                        {"MAX_NODES_PER_IMEX_DOMAIN", "18"},
                        {"FEATURE_GATES", "ComputeDomainCliques=true,"}};

Result<Config> configured(const Environment& environment,
                          const std::vector<std::string>& arguments = {}) {
  const Result<Args> args = parse_args(flags(), arguments, environment);
  if (!args) return args.failure();
  return read_config(*args, environment);
}

std::string refused(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  const Result<Config> config = configured(environment);
  if (!config) return config.error().text();
  const Result<void> usable = check_for_run(*config);
  REQUIRE_FALSE(usable);
  return usable.error().text();
}

}  // namespace

TEST_CASE("the daemon reads what the DaemonSet and the claim's CDI edits give it",
          "[daemon][config]") {
  const Result<Config> config = configured(usual);
  REQUIRE(config);
  CHECK(check_for_run(*config));
  CHECK(config->domain_text() == "ComputeDomain team/d");
  CHECK(config->slots == 18);
  CHECK(config->names());
  CHECK(config->cliques());
  CHECK(config->config_file() == "/imexd/imexd.cfg");
  CHECK(config->status_socket == "nvdra-daemon/7c9e6679-7425-40de-944b-e07fc1f90ae7");
}

TEST_CASE("the short name of the domain's flag is the same flag", "[daemon][config]") {
  const Result<Config> config = configured({}, {"--cd-uid", "x"});
  REQUIRE(config);
  CHECK(config->domain.value == "x");
}

TEST_CASE("the library path is our plugin's, or else the original's", "[daemon][config]") {
  Environment environment = usual;
  environment["NVIDIA_CTK_LIBCUDA_DIR"] = "/usr/lib64";
  CHECK(configured(environment)->library_path == "/usr/lib64");
  environment["NVDRA_IMEX_LIBRARY_PATH"] = "/a:/b";
  CHECK(configured(environment)->library_path == "/a:/b");
}

TEST_CASE("what is wrong with the configuration is one sentence", "[daemon][config]") {
  struct Row {
    const char* name;
    const char* value;
    const char* says;
  };
  const Row row = GENERATE(values<Row>({
      {"COMPUTE_DOMAIN_UUID", "", "CDI edits"},
      {"COMPUTE_DOMAIN_UUID", "../x", "no uid"},
      {"NODE_NAME", "", "spec.nodeName"},
      {"POD_IP", "", "status.podIP"},
      {"POD_IP", "10.0.0", "no IP address"},
      {"POD_UID", "", "metadata.uid"},
      {"MAX_NODES_PER_IMEX_DOMAIN", "-1", "use 1 to 9999"},
      {"IMEX_CONFIG_OVERRIDES", "LOG_LEVEL", "has no '='"},
      {"IMEX_CONFIG_OVERRIDES", "A=1\nB=2", "line break"},
      {"IMEX_CONFIG_OVERRIDES", "SERVER_PORT=1", "computes"},
      {"NVDRA_STATUS_SOCKET",
       "a-name-that-does-not-fit-into-the-108-bytes-that-linux-has-for-the-address-of-a-socket-its-"
       "first-zero-byte-too",
       "--status-socket, NVDRA_STATUS_SOCKET"},
      {"FEATURE_GATES", "IMEXDaemonsWithDNSNames=false",
       "ComputeDomainCliques requires IMEXDaemonsWithDNSNames"},
  }));
  INFO(row.name << "=" << row.value);
  const std::string text = refused(usual, row.name, row.value);
  CHECK_THAT(text, Catch::Contains(row.says));
  CHECK(text.find("\n\n") == std::string::npos);
}

TEST_CASE("a node without fabric needs no address", "[daemon][config]") {
  Environment environment = usual;
  environment["CLIQUE_ID"] = "";
  environment["POD_IP"] = "";
  const Result<Config> config = configured(environment);
  REQUIRE(config);
  CHECK(check_for_run(*config));
}

TEST_CASE("trouble is told sooner than a slow start", "[daemon][herald]") {
  CHECK(patience_with({false, "CRASHING", "x"}) < patience_with({false, "INIT_GPU", "x"}));
}

TEST_CASE("the pod says the state word, and the reason where that says more", "[daemon][herald]") {
  CHECK(told({true, "READY", ""}).empty());
  CHECK(told({false, "INIT_GPU", "nvidia-imex says INIT_GPU"}) == "INIT_GPU");
  CHECK(told({false, "CRASHING", "it keeps ending: \xff\n"}) == "CRASHING: it keeps ending: ??");
  CHECK(told({false, "JOINING", std::string(9000, 'x')}).size() == 500);
}
