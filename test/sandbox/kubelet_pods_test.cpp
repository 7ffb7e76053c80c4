// What a pod of the sandbox has around its command: network, files, probes, processes.
#include "catch.hpp"
#include "k8s/client.hpp"
#include "k8s/http_transport.hpp"
#include "kubelet_bench.hpp"
#include "sandbox/api_front.hpp"
#include "sandbox/api_server.hpp"
#include "sandbox/tool_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

namespace nvdra::sandbox {
namespace {

using Words = std::vector<std::string>;

JsonObject exec_probe(const std::string& script) {
  return {{"exec", JsonObject{{"command", JsonArray{"sh", "-c", Json(script)}}}},
          {"periodSeconds", 1},
          {"timeoutSeconds", 2},
          {"failureThreshold", 1}};
}

Json status_of(KubeletBench& bench, const std::string& pod) {
  const ItemPtr found = bench.pod(pod);
  const JsonArray& all =
      found ? array_or_empty(found->json(), "status/containerStatuses") : JsonArray{};
  return all.empty() ? Json(JsonObject{}) : all.front();
}

TEST_CASE("a pod is ready when its readiness probe says so, and no longer when it does not",
          "[sandbox][pod]") {
  KubeletBench bench;
  bench.make_pod_with("p", "sleep 1000",
                      JsonObject{{"readinessProbe", exec_probe("test -e /tmp/ready")}});
  REQUIRE(bench.becomes([&] { return !bench.events("Unhealthy").empty(); }));
  CHECK(bench.events("Unhealthy").at(0).starts_with("Readiness probe failed:"));
  CHECK(bench.phase("p") == "Running");
  CHECK_FALSE(bench.ready("p"));
  CHECK(bool_or(status_of(bench, "p"), "started", false));
  CHECK(*bench.exec("p", {"touch", "/tmp/ready"}) == 0);
  REQUIRE(bench.becomes([&] { return bench.ready("p"); }));
  CHECK(*bench.exec("p", {"rm", "/tmp/ready"}) == 0);
  CHECK(bench.becomes([&] { return !bench.ready("p"); }));
}

TEST_CASE("until the startup probe has succeeded, a container has not started", "[sandbox][pod]") {
  KubeletBench bench;
  JsonObject startup = exec_probe("test -e /tmp/up");
  startup["failureThreshold"] = 100;
  bench.make_pod_with(
      "p", "sleep 1000",
      JsonObject{{"startupProbe", startup}, {"livenessProbe", exec_probe("test -e /tmp/up")}});
  REQUIRE(bench.becomes([&] { return bench.event_count("Unhealthy") >= 2; }));
  CHECK(bench.phase("p") == "Running");
  CHECK_FALSE(bench.ready("p"));
  CHECK_FALSE(bool_or(status_of(bench, "p"), "started", true));
  CHECK(*bench.exec("p", {"touch", "/tmp/up"}) == 0);
  CHECK(bench.becomes([&] { return bench.ready("p"); }));
  CHECK(int_or(status_of(bench, "p"), "restartCount", -1) == 0);
}

TEST_CASE("a container whose liveness probe fails is started again", "[sandbox][pod]") {
  KubeletBench bench;
  bench.make_pod_with("p", "sleep 1000",
                      JsonObject{{"livenessProbe", exec_probe("test ! -e /tmp/sick")}});
  REQUIRE(bench.becomes([&] { return bench.ready("p"); }));
  CHECK(*bench.exec("p", {"touch", "/tmp/sick"}) == 0);
  REQUIRE(bench.becomes(
      [&] { return int_or(status_of(bench, "p"), "restartCount", 0) == 1 && bench.ready("p"); }));
  CHECK(bench.events("Killing") == Words{"Container app failed liveness probe, will be restarted"});
  CHECK(*bench.exec("p", {"test", "!", "-e", "/tmp/sick"}) == 0);
}

TEST_CASE("a container sees its own processes only, and they end with its command",
          "[sandbox][pod]") {
  KubeletBench bench;
  bench.make_pod("p", "sleep 1001 & cat /proc/1/comm; ls -d /proc/[0-9]* | wc -l; sleep 0.5",
                 "Never");
  REQUIRE(bench.becomes([&] { return bench.phase("p") == "Succeeded"; }));
  const std::string log = bench.log("p");
  REQUIRE(log.find('\n') != std::string::npos);
  CHECK(std::stoi(log.substr(log.find('\n'))) < 8);
}

TEST_CASE("files can be mounted among those of the image", "[sandbox][pod]") {
  fake::TempDir image;
  image.write("tool", "#!/bin/sh\necho from the image\n");
  ::chmod(image.path("tool").c_str(), 0755);
  KubeletBench bench({.images = {{"tool:1", {{image.path("tool"), "/usr/bin/the-tool", {"ro"}}}}}});
  bench.make_pod_with("p", "the-tool; sleep 1000", JsonObject{{"image", "tool:1"}});
  CHECK(bench.becomes([&] { return bench.log("p") == "from the image\n"; }));
  CHECK_FALSE(std::filesystem::exists("/usr/bin/the-tool"));
}

TEST_CASE("a pod's hosts file can be written in place, and is new after a restart",
          "[sandbox][pod]") {
  KubeletBench bench;
  bench.make_pod("p", "cat /etc/hosts; echo 127.0.0.2 peer >> /etc/hosts; exit 1");
  const auto restarted = [&] { return int_or(status_of(bench, "p"), "restartCount", 0) == 2; };
  REQUIRE(bench.becomes(restarted));
  const std::string log = bench.log("p");
  CHECK(log.starts_with("# Kubernetes-managed hosts file."));
  CHECK(log.find("peer") == std::string::npos);
}

TEST_CASE("pods reach each other by their addresses, each with its own ports", "[sandbox][pod]") {
  if (::geteuid() != 0) {
    WARN("not root: pods share one network");
    return;
  }
  KubeletBench bench({.network = true});
  REQUIRE(bench.network->separate());
  const std::string serve =
      "exec python3 -c 'import socket; s = socket.create_server((\"0.0.0.0\", 50000))\n"
      "while True: c = s.accept()[0]; c.send(socket.gethostname().encode()); c.close()'";
  bench.make_pod("a", serve);
  bench.make_pod("b", serve);
  REQUIRE(bench.becomes([&] { return bench.ready("a") && bench.ready("b"); }));
  const std::string address(text_or_empty(bench.pod("b")->json(), "status/podIP"));
  CHECK(address.starts_with("10.244.1."));
  CHECK(address != text_or_empty(bench.pod("a")->json(), "status/podIP"));
  const std::string ask = "import socket; assert socket.create_connection((\"" + address +
                          "\", 50000)).recv(9) == b\"b\"";
  CHECK(bench.becomes([&] { return *bench.exec("a", {"python3", "-c", ask}) == 0; }));
}

TEST_CASE("a pod's connection to the API server outlives the coming and going of others",
          "[sandbox][pod]") {
  if (::geteuid() != 0) {
    WARN("not root: pods share one network");
    return;
  }
  const auto network = PodNetwork::make();
  REQUIRE(network->separate());
  const auto listening = network->listen_for_api();
  const auto pod = network->attach(1);
  REQUIRE((listening && pod));
  const auto client =
      in_net_space(pod->space, [&] { return connect_tcp(network->api_host(), 443, 2s); });
  REQUIRE(client);
  pollfd ready{.fd = listening->get(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&ready, 1, 2000) == 1);
  const Fd server(::accept4(listening->get(), nullptr, nullptr, SOCK_CLOEXEC));
  // A bridge without an address of its own takes the lowest of its ports.
  std::vector<PodPort> others;
  for (int i = 0; i < 20; ++i) {
    auto other = network->attach(2);
    REQUIRE(other);
    others.push_back(*std::move(other));
  }
  REQUIRE(::send(client->get(), "x", 1, MSG_NOSIGNAL) == 1);
  ready.fd = server.get();
  CHECK(::poll(&ready, 1, 2000) == 1);
}

TEST_CASE("what was asked of the HTTPS front is answered by the API server", "[sandbox][pod]") {
  asio::io_context loop(1);
  RealTime time;
  Registry registry(time);
  const auto server = ApiServer::listen(loop.get_executor(), registry);
  REQUIRE(server);
  auto listening = listen_tcp("127.0.0.1", 0);
  REQUIRE(listening);
  const auto front =
      ApiFront::make(loop.get_executor(), *std::move(listening), (*server)->port(), {"127.0.0.1"});
  REQUIRE(front);
  TaskGroup group(loop.get_executor());
  group.spawn("server", (*server)->run());
  group.spawn("front", (*front)->run());
  const auto version = [&](const std::string& authority) {
    k8s::Config config{.host = "127.0.0.1", .port = std::to_string((*front)->port())};
    config.ca_pem = authority;
    auto transport = k8s::make_http_transport(loop.get_executor(), time, std::move(config));
    REQUIRE(transport);
    k8s::Client client(**transport, time);
    const auto answer = fake::run(loop, client.get({.group = "",
                                                    .version = "v1",
                                                    .plural = "namespaces",
                                                    .kind = "Namespace",
                                                    .namespaced = false},
                                                   {"", "default"}));
    return answer ? std::string(answer->name()) : answer.error().text();
  };
  CHECK(version((*front)->authority()) == "default");
  group.stop();
  CHECK(fake::run(loop, group.join()));
}

}  // namespace
}  // namespace nvdra::sandbox
