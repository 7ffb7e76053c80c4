// The driver with real files, a real nvidia-smi (played), and an API server that is a table.
#include "roles/kubelet_plugin/driver.hpp"

#include "base/files.hpp"
#include "catch.hpp"
#include "cdi/names.hpp"
#include "fake/driver_root.hpp"
#include "fake/run_loop.hpp"
#include "roles/kubelet_plugin/claims.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::kubelet_plugin;
using namespace nvdra::roles::kubelet_plugin::test;

namespace {

constexpr const char* with_fabric =
    "out 0, NVIDIA GB200, GPU-1, 580.95.05, Completed, Success, 7, "
    "11111111-2222-3333-4444-555555555555\n";
constexpr const char* without_fabric = "out 0, NVIDIA A100, GPU-1, 580.95.05, N/A, N/A, N/A, N/A\n";

// Answers what it has for a path, else 404; down: no connection.
class TableApi final : public k8s::Transport {
public:
  std::map<std::string, Json> objects;
  bool down = false;

  Async<Result<k8s::HttpAnswer>> send(k8s::HttpRequest request) override {
    if (down) co_return fail(k8s::Errc::not_sent, "connect");
    auto found = objects.find(request.target.substr(0, request.target.find('?')));
    if (found == objects.end())
      co_return k8s::HttpAnswer{404, R"({"kind":"Status","reason":"NotFound","code":404})"};
    co_return k8s::HttpAnswer{200, to_text(found->second)};
  }
  Async<Result<k8s::OpenAnswer>> open(k8s::HttpRequest) override {
    co_return fail(k8s::Errc::not_sent, "connect");
  }
};

class TestGate final : public Gate {
public:
  explicit TestGate(Event& news) : news_(news) {}
  void open() {
    open_ = true;
    news_.notify();
  }
  Async<std::optional<Trouble>> closed(DomainUid) override {
    ++asked;
    if (open_) co_return std::nullopt;
    co_return retry("the service says INITIALIZING");
  }
  Async<Result<void>> wait_change(std::uint64_t seen) override {
    co_await news_.wait(seen);
    co_return ok();
  }
  int asked = 0;

private:
  Event& news_;
  bool open_ = false;
};

struct Node {
  explicit Node(const char* smi = with_fabric)
      : cdi(*cdi::SpecDir::open(files.path() + "/cdi")),
        client(api, time),
        news(loop.get_executor()),
        metrics(time, "node-a"),
        checkpoint(directory.get(), files.path(), time),
        domains(loop.get_executor(), client, time, NodeName("node-a")),
        facts({root.path(), "/"}, gates, time, news),
        gate(news),
        events(loop.get_executor(), client, time, "plugin", "node-a"),
        driver({loop.get_executor(), time, client, checkpoint, cdi, domains, facts, gate, metrics,
                news, &events},
               config()) {
    root.tool("/usr/bin/nvidia-smi", smi);
    root.file("/devices", "Character devices:\n236 nvidia-caps-imex-channels\n\nBlock devices:\n");
    domains.store().replace({k8s::Object(domain("default"))}, "1");
    Result<void> known = run(facts_now());
    (void)known;  // facts.trouble() says it
  }

  DriverConfig config() const {
    DriverConfig config;
    config.roots = {"/driver-root", "/", root.path("/devices")};
    config.tell_after = 30ms;
    config.ask_pods = 20ms;
    config.look_again = 20ms;
    config.answer_margin = 10ms;
    return config;
  }
  static Json domain(std::string space) {
    return {{"metadata",
             {{"namespace", space}, {"name", "d"}, {"uid", domain_uid}, {"resourceVersion", "1"}}}};
  }
  Async<Result<void>> facts_now() {
    co_await facts.refresh();
    co_return ok();
  }
  template <class T>
  T run(Async<T> work) {
    return fake::run(loop, std::move(work));
  }

  const std::string pod_path = "/api/v1/namespaces/default/pods/p";
  Json pod = {{"metadata", {{"namespace", "default"}, {"name", "p"}, {"uid", "u"}}}};
  // A claim that the scheduler has placed here.
  void claim(std::string uid, Json status = channel_status()) {
    api.objects["/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/" + uid] = {
        {"metadata", {{"namespace", "default"}, {"name", uid}, {"uid", uid}}}, {"status", status}};
    api.objects.emplace(pod_path, pod);  // the one that waits for it
  }
  Result<dra::Prepared> prepare(std::string uid, Duration limit = 400ms) {
    return run(driver.prepare(ref(uid, uid), time.now() + limit));
  }
  Result<void> unprepare(std::string uid) {
    return run(driver.unprepare(ref(uid, uid), time.now() + 2s));
  }
  bool has_file(std::string uid) { return cdi.get(cdi::claim_file(ClaimUid(uid))).has_value(); }
  const dra::CheckpointClaim* entry(std::string uid) const {
    return checkpoint.current().find(ClaimUid(uid));
  }

  fake::TempDir files;
  fake::FakeNode root;
  Fd directory = *open_directory(files.path());
  asio::io_context loop{1};
  RealTime time;
  FeatureGates gates;
  cdi::SpecDir cdi;
  TableApi api;
  k8s::Client client;
  Event news;
  kubelet_plugin::Metrics metrics;
  dra::CheckpointStore checkpoint;
  Domains domains;
  NodeFacts facts;
  TestGate gate;
  k8s::EventRecorder events;
  Driver driver;
};

std::string error_of(const Result<dra::Prepared>& prepared) {
  REQUIRE_FALSE(prepared);
  return prepared.error().text();
}

}  // namespace

TEST_CASE("a ready claim gets its channel, its file and its entry", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.claim("a");
  auto prepared = node.prepare("a");
  REQUIRE(prepared);
  REQUIRE(prepared->size() == 1);
  CHECK(prepared->at(0).requests == std::vector<std::string>{"channel"});
  CHECK(prepared->at(0).cdi_ids ==
        std::vector<std::string>{"k8s.compute-domain.nvidia.com/claim=a-channel-0"});
  CHECK(node.entry("a")->state == dra::ClaimState::completed);
  auto spec = node.cdi.get(cdi::claim_file(ClaimUid("a")));
  REQUIRE(spec);
  const cdi::DeviceNode& device = spec->devices.at(0).edits.device_nodes.at(0);
  CHECK(device.path == "/dev/nvidia-caps-imex-channels/channel0");
  CHECK(device.host_path == device.path);
  CHECK(device.major == 236);
}

TEST_CASE("preparing again gives the same answer and brings a lost file back", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.claim("a");
  auto first = node.prepare("a");
  REQUIRE(node.cdi.remove(cdi::claim_file(ClaimUid("a"))));
  node.api.down = true;  // what is prepared needs no API server
  auto second = node.prepare("a");
  REQUIRE(second);
  CHECK(*second == *first);
  CHECK(node.has_file("a"));
}

TEST_CASE("a major that changed with a reboot is written anew", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.claim("a");
  REQUIRE(node.prepare("a"));
  node.root.file("/devices",
                 "Character devices:\n511 nvidia-caps-imex-channels\n\nBlock devices:\n");
  REQUIRE(node.prepare("a"));
  CHECK(
      node.cdi.get(cdi::claim_file(ClaimUid("a")))->devices.at(0).edits.device_nodes.at(0).major ==
      511);
}

TEST_CASE("a claim is held until the gate opens, its pod told meanwhile, and answered in time",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.claim("a");
  std::string text = error_of(node.prepare("a"));
  CHECK_THAT(text, Catch::Contains("error preparing devices for claim 'default/a:a': ") &&
                       Catch::Contains("INITIALIZING"));
  CHECK(node.entry("a")->state == dra::ClaimState::started);
  CHECK(node.events.waiting() == 1);

  auto later = [&]() -> Async<Result<void>> {
    co_await node.time.sleep(300ms);
    node.gate.open();
    co_return ok();
  };
  auto both = [&]() -> Async<Result<dra::Prepared>> {
    using namespace asio::experimental::awaitable_operators;
    auto [prepared, opened] =
        co_await (node.driver.prepare(ref("a", "a"), node.time.now() + 10s) && later());
    co_return prepared;
  };
  CHECK(node.run(both()));
}

TEST_CASE("a held claim is answered at once when its pod is being deleted", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.claim("a");
  Instant begun = node.time.now();
  error_of(node.prepare("a", 300ms));
  CHECK(node.time.now() - begun >= 280ms);  // a pod that waits keeps it

  node.pod.at("metadata").get_object()["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  node.api.objects[node.pod_path] = node.pod;
  begun = node.time.now();
  CHECK_THAT(error_of(node.prepare("a", 30s)), Catch::Contains("INITIALIZING"));
  CHECK(node.time.now() - begun < 10s);
}

TEST_CASE("a prepare that is held when its claim is unprepared does not finish",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.claim("a");
  node.claim("b");
  auto give_up = [&]() -> Async<Result<void>> {
    co_await node.time.sleep(30ms);
    Result<void> undone = co_await node.driver.unprepare(ref("a", "a"), node.time.now() + 2s);
    node.gate.open();
    co_return undone;
  };
  auto both = [&]() -> Async<Result<dra::Prepared>> {
    using namespace asio::experimental::awaitable_operators;
    auto [prepared, undone] =
        co_await (node.driver.prepare(ref("a", "a"), node.time.now() + 10s) && give_up());
    if (!undone) co_return std::move(undone).failure();
    co_return prepared;
  };
  CHECK_THAT(error_of(node.run(both())), Catch::Contains("already aborted"));
  CHECK(node.entry("a")->state == dra::ClaimState::aborted);
  CHECK_FALSE(node.has_file("a"));
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("already aborted"));
  CHECK(node.prepare("b"));
  CHECK(node.unprepare("a"));
  CHECK(node.entry("b")->state == dra::ClaimState::completed);
}

TEST_CASE("two calls for one claim at once have one set of effects", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.claim("a");
  auto both = [&]() -> Async<Result<void>> {
    using namespace asio::experimental::awaitable_operators;
    auto until = node.time.now() + 2s;
    auto [one, two] = co_await (node.driver.prepare(ref("a", "a"), until) &&
                                node.driver.prepare(ref("a", "a"), until));
    CHECK(one);
    CHECK(two);
    co_return ok();
  };
  CHECK(node.run(both()));
  CHECK(node.checkpoint.current().entries().size() == 1);
}

TEST_CASE("unpreparing removes file and entry, and is a success for unknown claims",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.claim("a");
  REQUIRE(node.prepare("a"));
  node.api.down = true;
  CHECK(node.unprepare("a"));
  CHECK_FALSE(node.has_file("a"));
  CHECK_FALSE(node.entry("a"));
  CHECK(node.unprepare("a"));
  CHECK(node.unprepare("never-seen"));
}

TEST_CASE("a node without fabric starts the claim without a device", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node(without_fabric);
  node.claim("a");
  auto prepared = node.prepare("a");
  REQUIRE(prepared);
  CHECK(prepared->at(0).cdi_ids.empty());
  CHECK_FALSE(node.has_file("a"));
  CHECK(node.gate.asked == 0);
}

TEST_CASE("without the channels' device class nothing is written until it is there",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.root.file("/devices", "Character devices:\n1 mem\n\nBlock devices:\n");
  node.claim("a");
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("nvidia-caps-imex-channels"));
  CHECK_FALSE(node.has_file("a"));
  node.root.file("/devices",
                 "Character devices:\n236 nvidia-caps-imex-channels\n\nBlock devices:\n");
  CHECK(node.prepare("a"));
}

TEST_CASE("a node whose GPUs cannot be asked holds the claim and says why", "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node("exit 9\n");
  node.gate.open();
  node.claim("a");
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("nvidia-smi"));
  node.root.tool("/usr/bin/nvidia-smi", with_fabric);
  REQUIRE(node.run(node.facts_now()));
  CHECK(node.prepare("a"));
}

TEST_CASE("claims that cannot be prepared are told at once and leave no trace",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  Json daemon = status(JsonArray{result("daemon-0", "daemon")},
                       JsonArray{config(parameters(daemon_config_kind, domain_uid), "FromClaim",
                                        JsonArray{"daemon"})});
  node.claim("daemon", daemon);
  CHECK_THAT(error_of(node.prepare("daemon")), Catch::Contains("hostManaged"));
  node.claim("hostile", channel_status("../../x"));
  CHECK_THAT(error_of(node.prepare("hostile")), Catch::Contains("single path component"));
  node.claim("stranger", channel_status("1b4e28ba-2fa1-11d2-883f-0016d3cca427"));
  node.api.objects["/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains"] = {
      {"metadata", {{"resourceVersion", "1"}}}, {"items", JsonArray{}}};
  CHECK_THAT(error_of(node.prepare("stranger")), Catch::Contains("was not found"));
  CHECK_THAT(error_of(node.prepare("absent")), Catch::Contains("does not exist any more"));
  node.api.objects["/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/replaced"] = {
      {"metadata", {{"uid", "another"}}}, {"status", channel_status()}};
  CHECK_THAT(error_of(node.prepare("replaced")), Catch::Contains("got replaced"));
  CHECK(node.checkpoint.current().entries().empty());
}

TEST_CASE("a claim in another namespace than its ComputeDomain is told so at once",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.domains.store().replace({k8s::Object(Node::domain("elsewhere"))}, "2");
  node.gate.open();
  node.claim("a");
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("\"elsewhere\""));
}

TEST_CASE("while the API server is away a new claim is held and an old one unprepared",
          "[plugin][driver]") {
  if (fake::must_skip_root_tests()) return;
  Node node;
  node.gate.open();
  node.claim("a");
  node.api.down = true;
  CHECK_THAT(error_of(node.prepare("a")), Catch::Contains("connect"));
  CHECK_FALSE(node.entry("a"));
  node.api.down = false;
  CHECK(node.prepare("a"));
}
