// How a plugin starts, ends, and shares the node with others.
#include "catch.hpp"
#include "dra/server.hpp"
#include "dra/server_world.hpp"

using namespace nvdra;
using namespace nvdra::dra;
using namespace nvdra::dra::server_test;

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
    CHECK(started.error().text() ==
          "announce the plugin: there is no directory " + world.dir.path("registry") +
              ": give --kubelet-registrar-directory-path the one that the kubelet has");
  }
  SECTION("the plugin's own directory is missing") {
    std::filesystem::remove(world.dir.path("plugin"));
    Result<void> started = world.start();
    REQUIRE_FALSE(started);
    CHECK(started.error().text() ==
          "serve claims: there is no directory " + world.dir.path("plugin") +
              ": give --kubelet-plugins-directory-path the one that the kubelet has");
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
