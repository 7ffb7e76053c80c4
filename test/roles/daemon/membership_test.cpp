#include "roles/daemon/membership.hpp"

#include "catch.hpp"
#include "fake/time.hpp"
#include "roles/daemon/api.hpp"
#include "roles/daemon/people.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <set>

using namespace nvdra;
using namespace nvdra::roles;
using namespace nvdra::roles::daemon;
using namespace nvdra::roles::daemon::test;

namespace {

// A world of daemons that share one API server and one clock.
struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  Api api{loop.get_executor(), time};

  const std::string path =
      "/apis/resource.nvidia.com/v1beta1/namespaces/nvdra/computedomaincliques/" +
      clique_place().key.name;

  Members members() const {
    const auto found = api.objects.find(path);
    return found == api.objects.end() ? Members{}
                                      : read_members(found->second, MemberList::clique_daemons);
  }
  void run(Duration length, Duration step = 1ms) {
    for (const Instant end = time.now() + length; time.now() < end;) time.advance(step);
  }
};

struct Daemon {
  Daemon(World& of, const std::string& node, const std::string& address, Place place,
         unsigned seed = 1)
      : Daemon(of, self(node, address), std::move(place), seed) {}
  Daemon(World& of, Self who, Place place, unsigned seed)
      : world(of),
        client(world.api, world.time),
        news(world.loop.get_executor()),
        membership({world.loop.get_executor(), client, world.time,
                    [engine = std::minstd_rand(seed)]() mutable {
                      return std::uniform_real_distribution<double>(0, 1)(engine);
                    },
                    news, [this] { return ready; }},
                   std::move(place), std::move(who)) {
    asio::co_spawn(world.loop, membership.run(),
                   asio::bind_cancellation_slot(stop.slot(), asio::detached));
  }
  void end() {
    stop.emit(asio::cancellation_type::terminal);
    world.time.settle();
  }
  std::optional<Result<bool>> leave(Duration within_time = 8s) {
    end();
    std::optional<Result<bool>> left;
    asio::co_spawn(
        world.loop,
        [](Membership* membership, std::optional<Result<bool>>* into) -> Async<void> {
          into->emplace(co_await membership->leave(8s));
        }(&membership, &left),
        asio::detached);
    world.run(within_time, 10ms);
    return left;
  }
  void become(bool now_ready) {
    ready = now_ready;
    news.notify();
  }
  ~Daemon() { end(); }

  World& world;
  k8s::Client client;
  Event news;
  bool ready = false;
  asio::cancellation_signal stop;
  Membership membership;
};

}  // namespace

TEST_CASE("a daemon joins an empty domain, becomes Ready and leaves with five requests",
          "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  REQUIRE(world.members().all.size() == 1);
  CHECK(daemon.membership.trouble().empty());
  CHECK_FALSE(world.members().all[0].ready);
  daemon.become(true);
  world.run(10ms);
  CHECK(world.members().all[0].ready);
  const auto left = daemon.leave();
  REQUIRE(left);
  REQUIRE(*left);
  CHECK(**left);
  CHECK(world.members().all.empty());
  CHECK(world.api.asked.size() == 5);  // list, watch, create, Ready, leave
}

TEST_CASE("eighteen daemons that join together all get an index with few requests each",
          "[daemon][membership]") {
  World world;
  world.api.latency = 3ms;
  std::vector<std::unique_ptr<Daemon>> daemons;
  for (int i = 0; i < 18; ++i)
    daemons.push_back(std::make_unique<Daemon>(world, "n" + std::to_string(i),
                                               "10.0.0." + std::to_string(i + 1), clique_place(),
                                               static_cast<unsigned>(i + 1)));
  Duration needed{};
  while (world.members().all.size() < 18 && needed < 20s) {
    world.run(1ms);
    needed += 1ms;
  }
  std::set<std::int64_t> indices;
  for (const Member& member : world.members().all) indices.insert(member.index);
  CHECK(indices.size() == 18);
  CHECK(*indices.rbegin() == 17);
  CHECK(needed < 2s);
  world.run(100ms);
  INFO("requests: " << world.api.asked.size() << " in " << needed.count() / 1000000 << " ms");
  CHECK(world.api.asked.size() <= 18 * 7);
  CHECK(world.api.count("GET") == 18);  // the watch tells the rest
}

TEST_CASE("daemons of many cliques need no more requests each (report 41)",
          "[daemon][membership]") {
  constexpr int cliques_count = 15;
  constexpr int members_each = 17;
  World world;
  world.api.latency = 5ms;
  std::vector<std::unique_ptr<Daemon>> daemons;
  std::vector<std::string> paths;
  for (int c = 0; c < cliques_count; ++c) {
    Self who = self("n", "10.0.0.1");
    who.clique.value += std::to_string(c);
    Place place = clique_place();
    place.key.name = clique_object_name(who.domain, who.clique);
    paths.push_back("/apis/resource.nvidia.com/v1beta1/namespaces/nvdra/computedomaincliques/" +
                    place.key.name);
    for (int i = 0; i < members_each; ++i) {
      who.node = NodeName("n" + std::to_string(c) + "-" + std::to_string(i));
      who.address = "10.0." + std::to_string(c) + "." + std::to_string(i + 1);
      who.pod_uid = "uid-" + who.node.value;
      daemons.push_back(
          std::make_unique<Daemon>(world, who, place, static_cast<unsigned>(daemons.size() + 1)));
    }
  }
  const auto joined = [&] {
    std::size_t count = 0;
    for (const std::string& path : paths)
      if (world.api.objects.contains(path))
        count += read_members(world.api.objects.at(path), MemberList::clique_daemons).all.size();
    return count;
  };
  for (Duration needed{}; joined() < daemons.size() && needed < 20s; needed += 1ms) world.run(1ms);
  CHECK(joined() == daemons.size());
  world.run(100ms);
  INFO("requests: " << world.api.asked.size());
  CHECK(world.api.asked.size() <= daemons.size() * 7);
}

TEST_CASE("eighteen daemons that stop together are all gone in time", "[daemon][membership]") {
  World world;
  world.api.latency = 3ms;
  std::vector<std::unique_ptr<Daemon>> daemons;
  for (int i = 0; i < 18; ++i)
    daemons.push_back(std::make_unique<Daemon>(world, "n" + std::to_string(i),
                                               "10.0.0." + std::to_string(i + 1), clique_place(),
                                               static_cast<unsigned>(i + 1)));
  world.run(3s);
  REQUIRE(world.members().all.size() == 18);
  const std::size_t before = world.api.asked.size();
  std::size_t left = 0;
  for (auto& daemon : daemons) {
    daemon->end();
    asio::co_spawn(
        world.loop,
        [](Membership* membership, std::size_t* count) -> Async<void> {
          const Result<bool> gone = co_await membership->leave(8s);
          if (gone && *gone) ++*count;
        }(&daemon->membership, &left),
        asio::detached);
  }
  world.run(4s);
  CHECK(left == 18);
  CHECK(world.members().all.empty());
  CHECK(world.api.asked.size() - before <= 18 * 8);
}

TEST_CASE("a clique that was collected is made again", "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  daemon.become(true);
  world.run(10ms);
  world.api.remove(world.path);
  world.run(100ms);
  REQUIRE(world.members().all.size() == 1);
  CHECK(world.members().all[0].ready);
}

TEST_CASE("a clique that is collected again and again is made ever more slowly",
          "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  const Instant end = world.time.now() + 30s;
  while (world.time.now() < end) {
    if (world.api.objects.contains(world.path)) world.api.remove(world.path);
    world.run(1ms);
  }
  CHECK(world.api.count("POST") > 10);
  CHECK(world.api.count("POST") < 40);
  world.run(20s, 10ms);
  CHECK(world.members().all.size() == 1);
}

TEST_CASE("an entry that somebody removes comes back, with its readiness", "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  daemon.become(true);
  world.run(10ms);
  Json edited = world.api.objects.at(world.path);
  edited.get_object()["daemons"] = JsonArray{};
  world.api.put(world.path, edited);
  world.run(100ms);
  REQUIRE(world.members().all.size() == 1);
  CHECK(world.members().all[0].ready);
}

TEST_CASE("an API server that is away is tried again, and what failed is told",
          "[daemon][membership]") {
  World world;
  world.api.down = true;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(3s, 10ms);
  CHECK_FALSE(daemon.membership.trouble().empty());
  world.api.down = false;
  world.run(60s, 50ms);
  CHECK(world.members().all.size() == 1);
  CHECK(daemon.membership.trouble().empty());
}

TEST_CASE("a member whose news cannot be written stays a member, and writes them later",
          "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  world.api.down = true;
  daemon.become(true);
  world.run(10s, 10ms);
  CHECK(daemon.membership.trouble().empty());
  CHECK(world.api.count("PATCH") < 8);
  world.api.down = false;
  world.run(10s, 10ms);
  CHECK(world.members().all[0].ready);
}

TEST_CASE("a daemon whose API server is away leaves within its limit and says what stays",
          "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  world.api.down = true;
  const auto left = daemon.leave(9s);
  REQUIRE(left);
  REQUIRE_FALSE(*left);
  CHECK_THAT(left->error().text(),
             Catch::Contains("entry of node a stays") && Catch::Contains("connect"));
}

TEST_CASE("leaving survives an outage that is shorter than its limit", "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  world.api.down = true;
  asio::co_spawn(
      world.loop,
      [](World* of) -> Async<void> {
        co_await of->time.sleep(3s);
        of->api.down = false;
      }(&world),
      asio::detached);
  const auto left = daemon.leave();
  REQUIRE(left);
  CHECK(left->has_value());
  CHECK(world.members().all.empty());
}

TEST_CASE("of two pods of one node the newer one keeps the entry", "[daemon][membership]") {
  World world;
  Daemon old(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  old.become(true);
  world.run(10ms);
  Daemon next(world, "a", "10.0.0.2", clique_place(), 2);
  world.run(1s, 10ms);
  REQUIRE(world.members().all.size() == 1);
  CHECK(world.members().all[0].ip == "10.0.0.2");
  CHECK_FALSE(world.members().all[0].ready);
  CHECK_FALSE(old.membership.trouble().empty());
  const std::size_t asked = world.api.asked.size();
  world.run(2s, 10ms);
  CHECK(world.api.asked.size() == asked);
  const auto left = old.leave();
  REQUIRE(left);
  CHECK(world.members().all[0].ip == "10.0.0.2");
}

TEST_CASE("an entry with a strange address is taken back when nobody stops this daemon",
          "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  Json edited = world.api.objects.at(world.path);
  edited.get_object()["daemons"] = JsonArray{entry("a", "10.9.9.9", 0, true)};
  world.api.put(world.path, edited);
  world.run(4s, 10ms);
  CHECK(world.members().all[0].ip == "10.9.9.9");
  world.run(2s, 10ms);
  CHECK(world.members().all[0].ip == "10.0.0.1");
}

TEST_CASE("nothing is asked of the API server while nothing changes", "[daemon][membership]") {
  World world;
  Daemon daemon(world, "a", "10.0.0.1", clique_place());
  world.run(10ms);
  const std::size_t asked = world.api.asked.size();
  world.run(170s, 100ms);  // the watch's own limit is beyond
  CHECK(world.api.asked.size() == asked);
}

TEST_CASE("without cliques a daemon enters the ComputeDomain's status", "[daemon][membership]") {
  World world;
  const std::string path = "/apis/resource.nvidia.com/v1beta1/namespaces/default/computedomains/d";
  Json bare = domain_with({}).json();
  bare.get_object().erase("status");
  world.api.put(path, bare);
  Daemon daemon(world, "a", "10.0.0.1", domain_place());
  world.run(10ms);
  const Json& written = world.api.objects.at(path);
  REQUIRE(read_members(written, MemberList::domain_nodes).all.size() == 1);
  CHECK(text_or_empty(written, "status/status") == "NotReady");
  CHECK(world.api.asked.back() == "PATCH " + path + "/status");
}
