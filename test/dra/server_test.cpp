#include "dra/server.hpp"

#include "base/event.hpp"
#include "base/task_group.hpp"
#include "catch.hpp"
#include "dra/health.hpp"
#include "dra/sockets.hpp"
#include "fake/kubelet.hpp"
#include "fake/temp_dir.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/this_coro.hpp>

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <functional>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

// A driver whose claims behave as their names say.
class NamedPlugin final : public Plugin {
public:
  explicit NamedPlugin(asio::io_context& loop) : released_(loop.get_executor()) {}

  Async<Result<Prepared>> prepare(ClaimRef claim, Deadline) override {
    ++begun;
    if (claim.name == "throws") throw std::runtime_error("a bug");
    if (claim.name == "fails") co_return refuse("the domain's daemon is not ready");
    if (claim.name == "held") {
      Held here{this};
      while (released_.count() == 0) co_await released_.wait(0);
    }
    co_return Prepared{
        {{"channel/first", "other"}, "node-a", "channel-0", {"vendor/class=" + claim.uid.value}}};
  }
  Async<Result<void>> unprepare(ClaimRef claim, Deadline) override {
    if (claim.name == "fails") co_return refuse("no space left");
    co_return ok();
  }
  void release() { released_.notify(); }

  std::atomic<int> begun = 0;  // prepares
  std::atomic<int> held = 0;   // that wait right now

private:
  struct Held {
    explicit Held(NamedPlugin* of) : plugin(of) { ++plugin->held; }
    ~Held() { --plugin->held; }
    NamedPlugin* plugin;
  };
  Event released_;
};

struct World {
  World() {
    std::filesystem::create_directory(dir.path("plugin"));
    std::filesystem::create_directory(dir.path("registry"));
  }
  ~World() { loop.run(server.stop(0s)); }

  ServerConfig config() const {
    return {.driver = "driver.example",
            .plugin_directory = dir.path("plugin"),
            .registrar_directory = dir.path("registry"),
            .patience = 0s};
  }
  Result<void> start() { return loop.run(server.start()); }
  // What `ask` says, asked on the loop.
  template <class Ask>
  auto on_loop(Ask ask) {
    return loop.run(answer_of(ask));
  }
  template <class Ask>
  static Async<std::invoke_result_t<Ask>> answer_of(Ask ask) {
    co_return ask();
  }

  fake::TempDir dir;
  RealTime time;
  fake::PluginLoop loop;
  NamedPlugin plugin{loop.loop};
  Server server{loop.loop, time, plugin, config()};
};

struct ServedWorld : World {
  ServedWorld() { REQUIRE(start()); }
  fake::Kubelet kubelet{server.registrar_path(), server.service_path()};
};

ClaimRef claim(const std::string& name, int number = 0) {
  return {"ns", name, ClaimUid("00000000-0000-0000-0000-" + std::to_string(100000000000 + number))};
}

bool eventually(const std::function<bool()>& condition, Duration limit = 10s) {
  Instant until = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace

TEST_CASE("the kubelet learns who the plugin is and where it serves", "[dra][server][loopback]") {
  ServedWorld world;
  fake::PluginInfo info = world.kubelet.get_info();
  REQUIRE(info.status.ok());
  CHECK(info.type == "DRAPlugin");
  CHECK(info.name == "driver.example");
  CHECK(info.endpoint == world.dir.path("plugin/dra.sock"));
  CHECK(info.versions == std::vector<std::string>{"v1.DRAPlugin", "v1beta1.DRAPlugin"});
  CHECK(world.server.registrar_path() == world.dir.path("registry/driver.example-reg.sock"));
}

TEST_CASE("what the kubelet says about the registration is remembered", "[dra][server][loopback]") {
  ServedWorld world;
  auto trouble = [&] { return world.on_loop([&] { return world.server.trouble(); }); };
  CHECK(trouble().find("the kubelet has not registered the plugin yet") == 0);

  fake::RpcStatus refused = world.kubelet.notify(false, "versions do not match");
  CHECK(refused.code == 2);
  CHECK(refused.text.find("versions do not match") != std::string::npos);
  CHECK(trouble() == "the kubelet refused to register the plugin: versions do not match");

  CHECK(world.kubelet.notify(true).ok());
  CHECK(trouble() == "");
  CHECK(world.on_loop([&] { return world.server.registration().registered; }));
  // A kubelet that has restarted asks again, on the same socket.
  fake::Kubelet restarted(world.server.registrar_path(), world.server.service_path());
  CHECK(restarted.get_info().status.ok());
}

TEST_CASE("every claim gets its own answer, in either version", "[dra][server][loopback]") {
  auto version = GENERATE(fake::DraVersion::v1, fake::DraVersion::v1beta1);
  ServedWorld world;
  fake::ClaimAnswers answers =
      world.kubelet.prepare({claim("good", 1), claim("fails", 2), claim("good", 3)}, 10s, version);
  REQUIRE(answers.status.ok());
  REQUIRE(answers.claims.size() == 3);
  const fake::ClaimAnswer& good = answers.claims[claim("", 1).uid.value];
  CHECK(good.error == "");
  CHECK(good.devices == Prepared{{{"channel", "other"},  // the sub-request is cut
                                  "node-a",
                                  "channel-0",
                                  {"vendor/class=" + claim("", 1).uid.value}}});
  const fake::ClaimAnswer& failed = answers.claims[claim("", 2).uid.value];
  CHECK(failed.error == "the domain's daemon is not ready");
  CHECK(failed.devices.empty());

  fake::ClaimAnswers undone =
      world.kubelet.unprepare({claim("good", 1), claim("fails", 2)}, 10s, version);
  REQUIRE(undone.status.ok());
  CHECK(undone.claims.size() == 2);
  CHECK(undone.claims[claim("", 1).uid.value].error == "");
  CHECK(undone.claims[claim("", 2).uid.value].error == "no space left");
}

TEST_CASE("a request without claims has an empty answer", "[dra][server][loopback]") {
  ServedWorld world;
  fake::ClaimAnswers prepared = world.kubelet.prepare({});
  CHECK(prepared.status.ok());
  CHECK(prepared.claims.empty());
  CHECK(world.kubelet.unprepare({}).status.ok());
}

TEST_CASE("a claim that is named twice is worked once", "[dra][server][loopback]") {
  ServedWorld world;
  fake::ClaimAnswers answers = world.kubelet.prepare({claim("good", 1), claim("good", 1)});
  CHECK(answers.claims.size() == 1);
  CHECK(world.plugin.begun == 1);
}

TEST_CASE("a UID that could leave a directory never reaches the driver",
          "[dra][server][loopback]") {
  ServedWorld world;
  std::string uid = GENERATE(as<std::string>{}, "", "..", "../x", "a/b", std::string(65, 'a'));
  fake::ClaimAnswers answers = world.kubelet.prepare({{"ns", "c", ClaimUid(uid)}});
  REQUIRE(answers.status.ok());
  CHECK(answers.claims[uid].error == "claim ns/c:" + uid + ": this is no UID");
  CHECK(world.plugin.begun == 0);
}

TEST_CASE("an exception of the driver is that claim's error only", "[dra][server][loopback]") {
  ServedWorld world;
  fake::ClaimAnswers answers = world.kubelet.prepare({claim("throws", 1), claim("good", 2)});
  REQUIRE(answers.status.ok());
  CHECK(answers.claims[claim("", 1).uid.value].error.find("internal error: a bug") !=
        std::string::npos);
  CHECK(answers.claims[claim("", 2).uid.value].error == "");
}

TEST_CASE("held claims hold up neither other claims nor other requests",
          "[dra][server][loopback]") {
  ServedWorld world;
  constexpr int count = 64;
  std::vector<std::future<fake::ClaimAnswers>> held;
  for (int i = 0; i < count; ++i)
    held.push_back(world.kubelet.begin_prepare({claim("held", 2 * i), claim("held", 2 * i + 1)}));
  REQUIRE(eventually([&] { return world.plugin.held == 2 * count; }));

  CHECK(world.kubelet.prepare({claim("good", 1000)}, 5s).status.ok());
  CHECK(world.kubelet.unprepare({claim("good", 1000)}, 5s).status.ok());
  CHECK(world.kubelet.get_info().status.ok());

  world.on_loop([&] { return world.plugin.release(), 0; });
  for (auto& each : held) {
    fake::ClaimAnswers answers = each.get();
    CHECK(answers.status.ok());
    CHECK(answers.claims.size() == 2);
  }
  CHECK(world.plugin.held == 0);
}

TEST_CASE("a claim that takes too long is answered before the kubelet stops listening",
          "[dra][server][loopback]") {
  ServedWorld world;
  fake::ClaimAnswers answers = world.kubelet.prepare({claim("held", 1), claim("good", 2)}, 2s);
  REQUIRE(answers.status.ok());
  CHECK(answers.claims[claim("", 1).uid.value].error ==
        "prepare claim " + claim("held", 1).text() + ": no answer in time");
  CHECK(answers.claims[claim("", 2).uid.value].error == "");
  CHECK(world.plugin.held == 0);
}

TEST_CASE("work is cancelled when the kubelet goes away", "[dra][server][loopback]") {
  ServedWorld world;
  fake::RpcStatus status = world.kubelet.prepare_and_leave({claim("held", 1)}, 300ms);
  CHECK(status.code == 1);
  CHECK(world.plugin.begun == 1);
  CHECK(eventually([&] { return world.plugin.held == 0; }));
}

TEST_CASE("at its end the plugin vanishes for the kubelet and answers what it holds",
          "[dra][server][loopback]") {
  ServedWorld world;
  auto held = world.kubelet.begin_prepare({claim("held", 1)});
  REQUIRE(eventually([&] { return world.plugin.held == 1; }));
  world.loop.run(world.server.stop(0s));

  fake::ClaimAnswers answers = held.get();
  REQUIRE(answers.status.ok());
  CHECK(answers.claims[claim("", 1).uid.value].error.find("the kubelet plugin is stopping") !=
        std::string::npos);
  CHECK_FALSE(world.dir.exists("plugin/dra.sock"));
  CHECK_FALSE(world.dir.exists("registry/driver.example-reg.sock"));
  CHECK(world.kubelet.prepare({claim("good", 2)}, 2s).status.code == 14);
}

TEST_CASE("at its end work that is nearly done may finish", "[dra][server][loopback]") {
  ServedWorld world;
  auto held = world.kubelet.begin_prepare({claim("held", 1)});
  REQUIRE(eventually([&] { return world.plugin.held == 1; }));
  auto stopped = std::async(std::launch::async, [&] { world.loop.run(world.server.stop(10s)); });
  REQUIRE(eventually([&] { return !world.dir.exists("registry/driver.example-reg.sock"); }));
  world.on_loop([&] { return world.plugin.release(), 0; });
  fake::ClaimAnswers answers = held.get();
  CHECK(answers.status.ok());
  CHECK(answers.claims[claim("", 1).uid.value].error == "");
  CHECK(stopped.wait_for(5s) == std::future_status::ready);
}

namespace {

// As a role does it: works until it is cancelled, then stops in order.
Async<Result<void>> forever(Time* time) {
  co_await time->sleep(1h);
  co_return ok();
}
Async<void> role(World* world, bool* stopped) {
  Result<void> started = co_await world->server.start();
  REQUIRE(started);
  TaskGroup tasks(world->loop.loop.get_executor());
  tasks.spawn("work", forever(&world->time));
  Result<void> ended = co_await tasks.join();
  (void)ended;
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await world->server.stop(10s);
  *stopped = true;
}

}  // namespace

TEST_CASE("a role that was cancelled can still stop in order", "[dra][server][loopback]") {
  World world;
  asio::cancellation_signal cancel;
  bool stopped = false;
  std::promise<void> over;
  asio::co_spawn(
      world.loop.loop, role(&world, &stopped),
      asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr) { over.set_value(); }));
  REQUIRE(eventually([&] { return world.dir.exists("registry/driver.example-reg.sock"); }));
  fake::Kubelet kubelet(world.server.registrar_path(), world.server.service_path());
  auto held = kubelet.begin_prepare({claim("held", 1)});
  REQUIRE(eventually([&] { return world.plugin.held == 1; }));
  world.on_loop([&] { return cancel.emit(asio::cancellation_type::terminal), 0; });
  REQUIRE(eventually([&] { return !world.dir.exists("plugin/dra.sock"); }));
  world.on_loop([&] { return world.plugin.release(), 0; });
  CHECK(held.get().claims[claim("", 1).uid.value].error == "");
  REQUIRE(over.get_future().wait_for(10s) == std::future_status::ready);
  CHECK(stopped);
}

TEST_CASE("sockets that somebody removed are served again", "[dra][server][loopback]") {
  ServedWorld world;
  std::string registry = world.dir.path("registry");
  SECTION("the files") {
    std::filesystem::remove(registry + "/driver.example-reg.sock");
    std::filesystem::remove(world.dir.path("plugin/dra.sock"));
  }
  SECTION("the kubelet's whole directory") {
    // The plugin may put its socket back in the middle of it.
    std::error_code failed;
    while (std::filesystem::remove_all(registry, failed), failed) continue;
  }
  REQUIRE(eventually([&] {
    return world.dir.exists("registry/driver.example-reg.sock") &&
           world.dir.exists("plugin/dra.sock");
  }));
  fake::Kubelet again(world.server.registrar_path(), world.server.service_path());
  CHECK(again.get_info().status.ok());
  CHECK(again.prepare({claim("good", 1)}).claims.size() == 1);
}

TEST_CASE("of two plugins on one node the second says so and the first goes on",
          "[dra][server][loopback]") {
  ServedWorld world;
  Server second(world.loop.loop, world.time, world.plugin, world.config());
  Result<void> started = world.loop.run(second.start());
  REQUIRE_FALSE(started);
  CHECK(started.error().code == boost::system::errc::address_in_use);
  CHECK(started.error().text().find("serve claims: socket " + world.dir.path("plugin/dra.sock") +
                                    " is served by another plugin (process ") == 0);
  world.loop.run(second.stop(0s));
  CHECK(world.kubelet.get_info().status.ok());
  CHECK(world.kubelet.prepare({claim("good", 1)}).status.ok());
}

TEST_CASE("a new plugin takes over as soon as the old one has ended", "[dra][server][loopback]") {
  ServedWorld world;
  ServerConfig config = world.config();
  config.patience = 30s;
  Server second(world.loop.loop, world.time, world.plugin, config);
  auto started = std::async(std::launch::async, [&] { return world.loop.run(second.start()); });
  CHECK(started.wait_for(300ms) == std::future_status::timeout);
  world.loop.run(world.server.stop(0s));
  REQUIRE(started.wait_for(10s) == std::future_status::ready);
  CHECK(started.get());
  fake::Kubelet again(second.registrar_path(), second.service_path());
  CHECK(again.get_info().status.ok());
  world.loop.run(second.stop(0s));
}

TEST_CASE("another plugin that replaced our socket is left alone until it is gone",
          "[dra][server][loopback]") {
  ServedWorld world;
  auto trouble = [&] { return world.on_loop([&] { return world.server.trouble(); }); };
  world.kubelet.notify(true);
  std::string path = world.dir.path("plugin/dra.sock");
  Result<ListeningSocket> intruder = ListeningSocket::open(world.dir.path("plugin/new.sock"));
  REQUIRE(intruder);
  std::filesystem::rename(world.dir.path("plugin/new.sock"), path);
  REQUIRE(eventually(
      [&] { return trouble().find("is served by another plugin") != std::string::npos; }));
  struct stat before{}, after{};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  *intruder = ListeningSocket();
  std::filesystem::remove(path);
  REQUIRE(eventually([&] { return trouble().empty(); }));
  REQUIRE(::stat(path.c_str(), &after) == 0);
  fake::Kubelet again(world.server.registrar_path(), world.server.service_path());
  CHECK(again.prepare({claim("good", 1)}).status.ok());
}

TEST_CASE("what makes a start impossible is told", "[dra][server][loopback]") {
  World world;
  SECTION("the kubelet's directory is missing") {
    std::filesystem::remove(world.dir.path("registry"));
    Result<void> started = world.start();
    REQUIRE_FALSE(started);
    CHECK(started.error().text() == "announce the plugin: bind socket " +
                                        world.dir.path("registry/driver.example-reg.sock") +
                                        ": No such file or directory");
  }
  SECTION("a file in the place of the socket") {
    world.dir.write("plugin/dra.sock", "x");
    Result<void> started = world.start();
    REQUIRE_FALSE(started);
    CHECK(started.error().text() == "serve claims: " + world.dir.path("plugin/dra.sock") +
                                        " exists and is not a socket: remove it");
  }
  SECTION("a path that is too long") {
    ServerConfig config = world.config();
    config.registrar_directory = "/" + std::string(100, 'x');
    Server server(world.loop.loop, world.time, world.plugin, config);
    Result<void> started = world.loop.run(server.start());
    REQUIRE_FALSE(started);
    CHECK(started.error().text().find("--kubelet-registrar-directory-path") != std::string::npos);
    world.loop.run(server.stop(0s));
  }
}

TEST_CASE("the health service says whether the kubelet would be answered",
          "[dra][health][loopback]") {
  ServedWorld world;
  HealthServer health(world.loop.loop, world.server.service_path(), world.server.registrar_path());
  Result<int> port = health.start(0);
  REQUIRE(port);
  CHECK(fake::check_health(*port).serving == 1);
  CHECK(fake::check_health(*port, "liveness").serving == 1);
  CHECK(fake::check_health(*port, "readiness").status.code == 5);

  world.loop.run(world.server.stop(0s));
  fake::HealthAnswer dead = fake::check_health(*port);
  CHECK(dead.status.ok());
  CHECK(dead.serving == 2);
  world.loop.run(health.stop());
}

TEST_CASE("a health port that is taken is an error that names it", "[dra][health][loopback]") {
  World world;
  HealthServer first(world.loop.loop, "/none", "/none");
  Result<int> port = first.start(0);
  REQUIRE(port);
  HealthServer second(world.loop.loop, "/none", "/none");
  Result<int> taken = second.start(*port);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().text().find("TCP port " + std::to_string(*port)) != std::string::npos);
  world.loop.run(second.stop());
  world.loop.run(first.stop());
}
