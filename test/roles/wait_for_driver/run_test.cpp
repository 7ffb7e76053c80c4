#include "roles/wait_for_driver/run.hpp"

#include "base/process.hpp"
#include "catch.hpp"
#include "fake/driver_root.hpp"
#include "fake/run_loop.hpp"

#include <csignal>

namespace nvdra::roles::wait_for_driver {
namespace {

using fake::FakeNode;

const std::string smi = "/driver/usr/bin/nvidia-smi";
const std::string nvml = "/driver/usr/lib64/libnvidia-ml.so.1";

// The role against <node>/driver, which the host calls /run/nvidia/driver.
struct Waiting {
  explicit Waiting(const FakeNode& node, const std::string& interval = "1h") {
    const Command command{
        .program = WAIT_FOR_DRIVER,
        .arguments = {"--driver-root-parent", node.path(), "--link", node.path("/link"),
                      "--interval", interval},
        .environment = std::vector<std::string>{"NVIDIA_DRIVER_ROOT=/run/nvidia/driver"}};
    Result<Child> started = start(command, loop.get_executor(), true);
    REQUIRE(started);
    child.emplace(*std::move(started));
  }

  // Reads to the end; `line` may act on what it sees.
  Exit finish(std::function<void(const std::string&)> line) {
    const auto take = [&](std::string_view text) {
      lines.emplace_back(text);
      line(lines.back());
    };
    REQUIRE(fake::run(loop, each_line(std::move(child->output), take), 25s));
    const Result<Exit> exit = fake::run(loop, child->wait());
    REQUIRE(exit);
    return *exit;
  }

  asio::io_context loop{1};
  std::optional<Child> child;
  std::vector<std::string> lines;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a complete driver ends the wait at once, its tool run with nothing but LD_PRELOAD",
          "[wait_for_driver]") {
  const FakeNode node;
  node.tool(smi, "env\nout NVIDIA-SMI version: 570.158.01");
  node.file(nvml);
  Waiting waiting(node);
  const Exit exit = waiting.finish([](const std::string&) {});
  CHECK(exit.code == 0);
  REQUIRE(waiting.lines.size() == 2);
  CHECK_THAT(waiting.lines[0], Catch::Matches("20[0-9-]+T[0-9:]+Z  .*", Catch::CaseSensitive::Yes));
  CHECK_THAT(waiting.lines[0],
             Catch::Contains("nvidia-smi: '" + node.path("/link/usr/bin/nvidia-smi")));
  CHECK_THAT(waiting.lines[1], Catch::EndsWith("nvidia-smi --version: exit status 0"));
  CHECK(std::filesystem::read_symlink(node.path("/link")) == node.path("/driver"));

  REQUIRE(node.asked(smi).size() == 1);
  CHECK_THAT(node.asked(smi)[0], Catch::EndsWith(" --version"));
  std::ifstream environment(node.path(smi + ".env"));
  std::string first;
  std::string second;
  std::getline(environment, first);
  CHECK(first == "LD_PRELOAD=" + node.path("/link/usr/lib64/libnvidia-ml.so.1"));
  CHECK_FALSE(std::getline(environment, second));
}

TEST_CASE("a driver that appears is noticed at once", "[wait_for_driver]") {
  const FakeNode node;
  node.directory("/driver/usr/bin");
  node.directory("/driver/usr/lib64");
  Waiting waiting(node);
  const Exit exit = waiting.finish([&](const std::string& line) {
    if (!contains(line, "GPU Operator puts the driver")) return;  // the last hint of the first look
    node.tool(smi, "out NVIDIA-SMI");
    node.file(nvml);
  });
  CHECK(exit.code == 0);
  CHECK_THAT(waiting.lines.front(), Catch::Contains("nvidia-smi: not found"));
  CHECK_THAT(waiting.lines.back(), Catch::EndsWith("exit status 0"));
}

TEST_CASE("a tool that fails is run again, and its words are shown", "[wait_for_driver]") {
  const FakeNode node;
  node.tool(smi, "err driver not loaded\nexit 9");
  node.file(nvml);
  Waiting waiting(node, "50ms");
  int looks = 0;
  const Exit exit = waiting.finish([&](const std::string& line) {
    if (contains(line, "exit status 9") && ++looks == 2) node.file(smi + ".does", "out fine");
  });
  CHECK(exit.code == 0);
  CHECK(looks >= 2);
  CHECK(std::ranges::count(waiting.lines, "driver not loaded") >= 2);
}

TEST_CASE("every sixth look repeats the hints", "[wait_for_driver]") {
  const FakeNode node;
  node.directory("/driver");
  Waiting waiting(node, "10ms");
  int looks = 0;
  int hints = 0;
  const Exit exit = waiting.finish([&](const std::string& line) {
    looks += contains(line, "current contents") ? 1 : 0;
    hints += contains(line, "is an empty directory") ? 1 : 0;
    if (looks == 13 && hints == 3) CHECK(waiting.child->signal(SIGTERM));
  });
  CHECK(exit.code == 0);
  CHECK(looks >= 13);
}

TEST_CASE("SIGTERM is told and is no failure", "[wait_for_driver]") {
  const FakeNode node;
  Waiting waiting(node);
  bool sent = false;
  const Exit exit = waiting.finish([&](const std::string&) {
    if (!std::exchange(sent, true)) CHECK(waiting.child->signal(SIGTERM));
  });
  CHECK(exit.code == 0);
  CHECK_THAT(waiting.lines.back(), Catch::EndsWith("SIGTERM received, leaving"));
}

TEST_CASE("a link that cannot be made is exit status 1, wrong flags are 2", "[wait_for_driver]") {
  const FakeNode node;
  asio::io_context loop(1);
  RealTime time;
  const auto status = [&](std::vector<std::string> arguments) {
    const Command command{.program = WAIT_FOR_DRIVER, .arguments = std::move(arguments)};
    const Result<Output> output = fake::run(loop, nvdra::run(command, time, {.time = 20s}), 30s);
    REQUIRE(output);
    CHECK_THAT(output->err, Catch::StartsWith("Error: "));
    return output->exit.code;
  };
  CHECK(status({"--link", node.path("/dev")}) == 1);
  CHECK(status({"--link", node.path("/x"), "--driver-root=relative"}) == 2);
  CHECK(status({"--link", node.path("/x"), "--interval=0s"}) == 2);
  CHECK(status({"--unknown"}) == 2);
}

}  // namespace nvdra::roles::wait_for_driver
