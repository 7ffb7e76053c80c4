// The role as a process: its exit status and its one line of an error.
#include "roles/daemon/run.hpp"

#include "base/process.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"

#include <csignal>

using namespace nvdra;

namespace {

const std::vector<std::string> on_a_node{"COMPUTE_DOMAIN_UUID=0f8fad5b-d9cb-469f-a165-70867728950e",
                                         "NODE_NAME=node-a",
                                         "POD_NAME=p",
                                         "POD_NAMESPACE=nvdra",
                                         "POD_UID=u",
                                         "POD_IP=127.0.0.1"};

// Ends by itself.
Output outcome(std::vector<std::string> arguments, std::vector<std::string> environment) {
  asio::io_context loop(1);
  RealTime time;
  const Command command{.program = DAEMON_ROLE,
                        .arguments = std::move(arguments),
                        .environment = std::move(environment)};
  Result<Output> output = fake::run(loop, run(command, time, {.time = 20s}), 30s);
  REQUIRE(output);
  return *output;
}

// A kubeconfig of a server that is not there.
void nobody_serves(const fake::TempDir& files) {
  files.write("kubeconfig",
              R"({"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}],
"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]})");
}

// Told to end once it has said `line`; its exit and what it said.
std::pair<Exit, std::string> stopped_after(const std::string& line,
                                           std::vector<std::string> environment) {
  asio::io_context loop(1);
  Result<Child> child =
      start({.program = DAEMON_ROLE, .arguments = {"run"}, .environment = std::move(environment)},
            loop.get_executor(), true);
  REQUIRE(child);
  std::string said;
  asio::co_spawn(loop,
                 each_line(std::move(child->output),
                           [&](std::string_view text) {
                             said.append(text).append("\n");
                             if (text.find(line) != std::string_view::npos)
                               REQUIRE(child->signal(SIGTERM));
                           }),
                 [](std::exception_ptr, const Result<void>&) {});
  Result<Exit> exit = fake::run(loop, child->wait(), 30s);
  REQUIRE(exit);
  return {*exit, said};
}

}  // namespace

TEST_CASE("without a command, or with a wrong one, the daemon tells its usage", "[daemon][run]") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"start"}, {"run", "check"}}) {
    const Output output = outcome(words, {});
    CHECK(output.exit.code == 2);
    CHECK_THAT(output.err, Catch::StartsWith("Error: give one of the commands run and check"));
  }
}

TEST_CASE("without the claim's CDI edits the daemon fails with what to look at", "[daemon][run]") {
  const Output output = outcome({"run"}, {"NODE_NAME=node-a"});
  CHECK(output.exit.code == 1);
  CHECK_THAT(output.err, Catch::Contains("COMPUTE_DOMAIN_UUID") && Catch::Contains("CDI"));
}

TEST_CASE("on a node without fabric the probe succeeds and says that it does nothing",
          "[daemon][run]") {
  const Output output = outcome({"-v", "1", "check"}, on_a_node);
  CHECK(output.exit.code == 0);
  CHECK(output.out == "check succeeded (noop, clique ID is empty)\n");
}

TEST_CASE("without its tool the daemon fails at once and names the node", "[daemon][run]") {
  const fake::TempDir files;
  std::vector<std::string> environment = on_a_node;
  environment.push_back("CLIQUE_ID=c.1");
  environment.push_back("PATH=" + files.path());
  const Output output = outcome({"run"}, environment);
  CHECK(output.exit.code == 1);
  CHECK_THAT(output.err, Catch::Contains("Error: nvidia-imex is not in this container") &&
                             Catch::Contains("node-a"));
}

TEST_CASE("a node without fabric waits for its end even when the API server is away",
          "[daemon][run]") {
  const fake::TempDir files;
  nobody_serves(files);
  std::vector<std::string> environment = on_a_node;
  environment.push_back("KUBECONFIG=" + files.path("kubeconfig"));
  const auto [exit, said] = stopped_after("Cannot label this pod", environment);
  INFO(said);
  CHECK(exit.code == 0);
  CHECK_THAT(said, Catch::Contains("This node has no fabric"));
}
