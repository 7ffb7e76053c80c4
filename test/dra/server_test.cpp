#include "dra/server.hpp"

#include "catch.hpp"
#include "dra/server_world.hpp"

using namespace nvdra;
using namespace nvdra::dra;
using namespace nvdra::dra::server_test;

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
