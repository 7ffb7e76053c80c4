#include "sandbox/api_pods.hpp"

#include "base/process.hpp"
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "sandbox/api_websocket.hpp"
#include "served.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace nvdra;
using namespace nvdra::sandbox;

namespace {

// Logs two lines; a command says what it was, repeats its input and exits with 3.
class Parrot final : public PodRuntime {
public:
  LogQuery asked;

  Async<Result<void>> logs(ItemPtr pod, LogQuery query, PodOutput& output) override {
    asked = query;
    if (query.container == "none") co_return deny(Reason::bad_request, "no such container");
    Result<void> first = co_await output.write_out("one of " + std::string(pod->name()) + "\n");
    if (!first) co_return first;
    Result<void> second = co_await output.write_out("two\n");
    co_return second;
  }

  Async<Result<int>> exec(ItemPtr, ExecQuery query, PodOutput& output) override {
    std::string words;
    for (const std::string& word : query.command) words += "[" + word + "]";
    Result<void> told = co_await output.write_out(words + "\n");
    if (query.command.front() == "true") co_return 0;
    while (told && query.stdin_open) {
      Result<std::string> input = co_await output.read_in();
      if (!input || input->empty()) break;
      told = co_await output.write_err("heard " + *input);
    }
    co_return 3;
  }
};

struct WithPod : Served {
  explicit WithPod(PodRuntime* parrot) : Served({}, {.pods = parrot}) {
    make("pods", "default",
         "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}");
    REQUIRE(registry.bind({"default", "p"}, "n1"));
  }
};

std::string kubectl_path() {
  if (const char* assets = std::getenv("KUBEBUILDER_ASSETS"))
    return std::string(assets) + "/kubectl";
  const char* home = std::getenv("HOME");
  std::error_code failed;
  std::filesystem::path cache =
      std::filesystem::path(home ? home : "/") / ".cache/nvdra/kubernetes";
  for (const auto& entry : std::filesystem::directory_iterator(cache, failed))
    if (std::filesystem::exists(entry.path() / "kubectl")) return entry.path() / "kubectl";
  return {};
}

std::string frame(std::string_view payload) {
  std::string bytes{'\x82', static_cast<char>(0x80 | payload.size()), 1, 2, 3, 4};
  for (std::size_t i = 0; i < payload.size(); ++i)
    bytes += static_cast<char>(payload[i] ^ static_cast<char>(i % 4 + 1));
  return bytes;
}

// Sends the upgrade and two messages of stdin, and returns everything that comes back.
Async<std::string> exec_raw(std::uint16_t port) {
  auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::socket socket(executor);
  asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  co_await socket.async_connect(endpoint, asio::use_awaitable);
  std::string text =
      "GET /api/v1/namespaces/default/pods/p/exec?command=a&command=b%20c&stdin=true&stdout=true "
      "HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
      "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: "
      "v5.channel.k8s.io\r\n\r\n" +
      frame(std::string("\0hi", 3)) + frame(std::string("\xff\0", 2));
  co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
  std::string answer;
  for (;;) {
    std::string chunk(1024, '\0');
    boost::system::error_code failed;
    std::size_t count = co_await socket.async_read_some(
        asio::buffer(chunk), asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return answer;
    answer.append(chunk, 0, count);
  }
}

}  // namespace

TEST_CASE("logs of a pod come from its runtime", "[sandbox][api][pods]") {
  Parrot parrot;
  WithPod world(&parrot);
  auto stream =
      world.open("/api/v1/namespaces/default/pods/p/log?container=c&follow=true&tailLines=5");
  CHECK(world.next_line(*stream) == "one of p");
  CHECK(world.next_line(*stream) == "two");
  CHECK(world.next_line(*stream).empty());
  CHECK(parrot.asked.container == "c");
  CHECK(parrot.asked.follow);
  CHECK(parrot.asked.tail_lines == 5);
  Reply refused = world.call("GET", "/api/v1/namespaces/default/pods/p/log?container=none");
  CHECK(refused.status == 400);
  CHECK(text_or_empty(refused.object, "message") == "no such container");
}

TEST_CASE("a command in a pod has channels for input, output, errors and its end",
          "[sandbox][api][pods]") {
  Parrot parrot;
  WithPod world(&parrot);
  std::string answer = fake::run(world.loop, exec_raw(world.server->port()));
  CHECK_THAT(answer, Catch::Contains("101 Switching Protocols"));
  CHECK_THAT(answer, Catch::Contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  CHECK_THAT(answer, Catch::Contains("\x01[a][b c]\n"));
  CHECK_THAT(answer, Catch::Contains("\x02heard hi"));
  CHECK_THAT(answer, Catch::Contains("\x03{"));
  CHECK_THAT(answer, Catch::Contains("\"reason\":\"ExitCode\",\"message\":\"3\""));
}

TEST_CASE("kubectl logs and exec work against a pod's runtime", "[sandbox][api][pods][kubectl]") {
  std::string kubectl = kubectl_path();
  if (kubectl.empty()) {
    WARN("skipped: no kubectl in $KUBEBUILDER_ASSETS or the cache of ./dev");
    return;
  }
  Parrot parrot;
  WithPod world(&parrot);
  fake::TempDir folder;
  std::string config = folder.path() + "/kubeconfig";
  std::ofstream(config) << world.server->kubeconfig();
  RealTime time;
  auto call = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--kubeconfig", config});
    Command command{.program = kubectl,
                    .arguments = arguments,
                    .environment = std::vector<std::string>{"HOME=" + folder.path()}};
    Result<Output> output = fake::run(world.loop, run(command, time, {.time = 30s}), 40s);
    REQUIRE(output);
    return *output;
  };
  Output logs = call({"logs", "p"});
  CHECK(logs.out == "one of p\ntwo\n");
  Output good = call({"exec", "p", "--", "true", "x y"});
  CHECK(good.out == "[true][x y]\n");
  CHECK(good.exit.code == 0);
  Output bad = call({"exec", "p", "--", "false"});
  CHECK(bad.exit.code == 3);
}
