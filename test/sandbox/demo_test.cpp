// The demonstration itself, as a spectator would start it.
#include "base/process.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"

#include <boost/asio/io_context.hpp>

#include <unistd.h>

#include <algorithm>
#include <vector>

namespace nvdra::sandbox {
namespace {

Output play(const std::vector<std::string>& before) {
  std::vector<std::string> words = before;
  for (const char* word : {NVDRA_SANDBOX, "demo", "host-managed", "--nvdra", NVDRA})
    words.emplace_back(word);
  asio::io_context loop(1);
  RealTime time;
  const Command command{
      .program = words[0],
      .arguments = {words.begin() + 1, words.end()},
      .environment = std::vector<std::string>{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}};
  auto done = fake::run(loop, run(command, time, {.time = 100s}), 110s);
  if (!done) throw std::runtime_error(done.error().text());
  return *done;
}

void check(const Output& played) {
  INFO(played.out << played.err);
  CHECK(played.exit.success());
  for (const char* text :
       {"$ kubectl apply -f my-workload.yaml", "IMEX channel0 is available", "No resources found",
        "FailedPrepareDynamicResources", "pod/my-workload condition met",
        "pod \"my-workload\" deleted", "All five steps went as the guide says"})
    CHECK(played.out.find(text) != std::string::npos);
}

TEST_CASE("the host-managed demonstration plays all five steps", "[sandbox][demo]") {
  check(play({}));
}

TEST_CASE("it needs no root", "[sandbox][demo]") {
  if (::geteuid() != 0) {
    WARN("the test before was not root already");
    return;
  }
  check(play({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}));
}

TEST_CASE("a demonstration that does not exist is refused", "[sandbox][demo]") {
  asio::io_context loop(1);
  RealTime time;
  const Command command{.program = NVDRA_SANDBOX, .arguments = {"demo", "nonsense"}};
  const auto done = fake::run(loop, run(command, time, {.time = 10s}));
  REQUIRE(done);
  CHECK(done->exit.code == 2);
  CHECK(done->err.find("host-managed") != std::string::npos);
}

}  // namespace
}  // namespace nvdra::sandbox
