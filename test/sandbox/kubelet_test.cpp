// A kubelet of the sandbox against a plugin on real sockets; containers are real processes.
#include "catch.hpp"
#include "kubelet_bench.hpp"
#include "sandbox/tool_socket.hpp"

#include <algorithm>

namespace nvdra::sandbox {
namespace {

using Calls = std::vector<std::string>;

TEST_CASE("a pod with a claim runs with the claim's device, and answers exec",
          "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.start_plugin();
  bench.make_pod(
      "p",
      "test -c /dev/nvidia-caps-imex-channels/channel0 && echo \"$GREETING from $HOSTNAME\";"
      "sleep 1000",
      "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return bench.log("p") == "hello from p\n"; }));
  CHECK(bench.ready("p"));
  CHECK(bench.phase("p") == "Running");
  CHECK(bench.driver.calls == Calls{"prepare claim-a"});
  CHECK(*bench.exec("p", {"test", "-c", TestDriver::channel}) == 0);
  CHECK(*bench.exec("p", {"test", "-c", "/dev/other"}) == 1);
  CHECK(*bench.exec("p", {"no-such-program"}) == 127);
  CHECK(bench.events("Started") == Calls{"Started container app"});
}

TEST_CASE("a container sees its own devices and temporary files only", "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.folder.write("seen", "");
  bench.make_pod("p",
                 "ls " + bench.folder.path() + "; ls /dev; test -w /tmp && echo end; sleep 1000");
  REQUIRE(bench.becomes([&] { return bench.log("p").find("end") != std::string::npos; }));
  const std::string log = bench.log("p");
  CHECK(log.find("seen\n") == std::string::npos);
  CHECK(log.find("null\n") != std::string::npos);
  CHECK(log.find("nvidia") == std::string::npos);
}

TEST_CASE("a claim that is not ready is told in the pod's event and tried again",
          "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.driver.refusal = "the host service is down";
  bench.start_plugin();
  bench.make_pod("p", "sleep 1000", "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return bench.event_count("FailedPrepareDynamicResources") >= 2; }));
  CHECK(bench.events("FailedPrepareDynamicResources") ==
        Calls{"Failed to prepare dynamic resources: prepare dynamic resources: "
              "NodePrepareResources failed for ResourceClaim claim-a: the host service is down"});
  CHECK(bench.phase("p") == "Pending");
  CHECK_FALSE(bench.ready("p"));
  bench.driver.refusal.clear();
  CHECK(bench.becomes([&] { return bench.ready("p"); }));
}

TEST_CASE("a call to a plugin ends at its limit, in the words of a kubelet", "[sandbox][kubelet]") {
  asio::io_context loop(1);
  fake::TempDir folder;
  const auto deaf = listen_unix(folder.path("deaf.sock"));
  REQUIRE(deaf);
  const auto ask = [&](const char* socket) {
    PluginChannel channel(loop.get_executor(), folder.path(socket));
    const std::vector<dra::ClaimRef> claims = {{"default", "c", ClaimUid("u")}};
    const auto answer = fake::run(loop, channel.prepare(DraVersion::v1, claims, 300ms));
    return answer ? std::string() : answer.error().text();
  };
  CHECK(ask("deaf.sock") == "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  CHECK(ask("none.sock").starts_with("rpc error: code = Unavailable desc = "));
}

TEST_CASE("a claim that needs longer than the call is told and tried again", "[sandbox][kubelet]") {
  KubeletBench bench({.call_limit = 300ms});
  bench.driver.silent = true;
  bench.start_plugin();
  bench.make_pod("p", "sleep 1000", "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return bench.event_count("FailedPrepareDynamicResources") >= 2; }));
  CHECK(bench.driver.calls.size() >= 2);
}

TEST_CASE("a pod waits for a plugin that comes later", "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.make_pod("p", "sleep 1000", "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return !bench.events("FailedPrepareDynamicResources").empty(); }));
  CHECK(bench.events("FailedPrepareDynamicResources")
            .at(0)
            .ends_with("DRA driver test.example.com is not registered"));
  bench.start_plugin();
  CHECK(bench.becomes([&] { return bench.ready("p"); }));
}

TEST_CASE("a plugin that was restarted is registered again", "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.start_plugin();
  bench.make_pod("first", "sleep 1000", "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return bench.ready("first"); }));
  bench.stop_plugin();
  CHECK(bench.becomes([&] { return !bench.kubelet.plugins().find("test.example.com"); }));
  bench.start_plugin();
  bench.make_pod("second", "sleep 1000", "Always", "claim-b");
  CHECK(bench.becomes([&] { return bench.ready("second"); }));
}

TEST_CASE("a plugin that comes and goes while it is asked does no harm", "[sandbox][kubelet]") {
  KubeletBench bench({.call_limit = 100ms});
  bench.driver.silent = true;
  bench.start_plugin();
  for (int i = 0; i < 4; ++i)
    bench.make_pod("p" + std::to_string(i), "true", "Never", "c" + std::to_string(i));
  for (int i = 0; i < 10; ++i) {
    bench.stop_plugin();
    bench.start_plugin();
    const std::size_t asked = bench.driver.calls.size();
    CHECK(bench.becomes([&] { return bench.driver.calls.size() > asked; }));
  }
  bench.driver.silent = false;
  for (int i = 0; i < 4; ++i)
    CHECK(bench.becomes([&] { return bench.phase("p" + std::to_string(i)) == "Succeeded"; }));
}

TEST_CASE("a deleted pod is stopped, its claim released, and only then it goes",
          "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.start_plugin();
  bench.make_pod("p",
                 "trap 'sleep 0.3; echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
                 "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return bench.log("p") == "up\n"; }));
  const Instant begin = bench.time.now();
  bench.delete_pod("p");
  CHECK(bench.phase("p") == "Running");
  CHECK(bench.driver.calls == Calls{"prepare claim-a"});
  CHECK(bench.becomes([&] { return !bench.pod("p"); }));
  CHECK(bench.time.now() - begin >= 300ms);
  CHECK(bench.driver.calls == Calls{"prepare claim-a", "unprepare claim-a"});
}

TEST_CASE("a container that ignores SIGTERM is killed after the pod's grace period",
          "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.make_pod("p", "trap '' TERM; echo up; while :; do sleep 0.05; done");
  REQUIRE(bench.becomes([&] { return bench.log("p") == "up\n"; }));
  bench.delete_pod("p", 1);
  CHECK(bench.becomes([&] { return !bench.pod("p"); }));
}

TEST_CASE("a deletion interrupts a call to the plugin", "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.driver.silent = true;
  bench.start_plugin();
  bench.make_pod("p", "sleep 1000", "Always", "claim-a");
  REQUIRE(bench.becomes([&] { return bench.driver.calls == Calls{"prepare claim-a"}; }));
  bench.delete_pod("p");
  CHECK(bench.becomes([&] { return !bench.pod("p"); }, 5s));
  CHECK(bench.driver.calls.back() == "unprepare claim-a");
}

TEST_CASE("a pod that is not restarted ends with its command's result and releases its claim",
          "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.start_plugin();
  bench.make_pod("good", "true", "Never", "claim-a");
  bench.make_pod("bad", "exit 3", "Never", "claim-b");
  CHECK(bench.becomes([&] { return bench.phase("good") == "Succeeded"; }));
  CHECK(bench.becomes([&] { return bench.phase("bad") == "Failed"; }));
  CHECK(bench.becomes([&] { return bench.driver.calls.size() == 4; }));
  const Json& status = array_or_empty(bench.pod("bad")->json(), "status/containerStatuses").at(0);
  CHECK(int_or(status, "state/terminated/exitCode", 0) == 3);
}

TEST_CASE("a container that ends is started again, at first at once", "[sandbox][kubelet]") {
  KubeletBench bench;
  bench.make_pod("p", "exit 1");
  const auto status = [&] {
    return array_or_empty(bench.pod("p")->json(), "status/containerStatuses").at(0);
  };
  REQUIRE(bench.becomes([&] {
    return bench.pod("p") &&
           !array_or_empty(bench.pod("p")->json(), "status/containerStatuses").empty() &&
           text_or_empty(status(), "state/waiting/reason") == "CrashLoopBackOff" &&
           int_or(status(), "restartCount", 0) == 2;
  }));
  CHECK(int_or(status(), "lastState/terminated/exitCode", 0) == 1);
  CHECK(bench.event_count("Started") == 2);
}

TEST_CASE("the node's object has its address, labels and conditions", "[sandbox][kubelet]") {
  KubeletBench bench;
  const Resource& nodes = bench.registry.resource("nodes");
  REQUIRE(bench.becomes([&] { return bench.registry.find(nodes, {"", "node-1"}) != nullptr; }));
  const Json& node = bench.registry.find(nodes, {"", "node-1"})->json();
  CHECK(text_or_empty(array_or_empty(node, "status/addresses").at(0), "address") == "127.0.0.1");
  CHECK(*get(*find(node, "metadata/labels"), "kubernetes.io/hostname") == Json("node-1"));
  CHECK(std::ranges::any_of(array_or_empty(node, "status/conditions"), [](const Json& condition) {
    return text_or_empty(condition, "type") == "Ready" &&
           text_or_empty(condition, "status") == "True";
  }));
}

}  // namespace
}  // namespace nvdra::sandbox
