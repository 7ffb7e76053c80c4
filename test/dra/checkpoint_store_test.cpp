#include "dra/checkpoint_store.hpp"

#include "base/files.hpp"
#include "catch.hpp"
#include "fake/temp_dir.hpp"
#include "fake/time.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

using namespace nvdra;
using namespace nvdra::dra;

namespace {

const ClaimUid uid("1b4e28ba-2fa1-11d2-883f-0016d3cca427");
const ClaimUid other_uid("2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d");

std::function<Result<void>(Checkpoint&)> start(ClaimUid claim, std::string name) {
  return [claim, name](Checkpoint& checkpoint) {
    CheckpointClaim entry;
    entry.name = name;
    checkpoint.put(claim, entry);
    return ok();
  };
}

struct World {
  asio::io_context loop{1};
  fake::FakeTime time{loop};
  fake::TempDir dir;
  CheckpointStore store{dir.fd(), dir.path(), time};

  void begin(CheckpointStore& into, std::function<Result<void>(Checkpoint&)> change,
             std::optional<Result<void>>* answer) {
    asio::co_spawn(
        loop,
        [](CheckpointStore* s, std::function<Result<void>(Checkpoint&)> c,
           std::optional<Result<void>>* a) -> Async<void> {
          *a = co_await s->update(std::move(c));
        }(&into, std::move(change), answer),
        asio::detached);
    time.settle();
  }
  Result<void> update(std::function<Result<void>(Checkpoint&)> change) {
    std::optional<Result<void>> answer;
    begin(store, std::move(change), &answer);
    REQUIRE(answer);
    return *answer;
  }
  std::string set_aside() {
    std::optional<Result<std::string>> answer;
    asio::co_spawn(
        loop, [&]() -> Async<void> { answer = co_await store.set_aside(); }, asio::detached);
    time.settle();
    REQUIRE(answer);
    REQUIRE(*answer);
    return **answer;
  }
};

}  // namespace

TEST_CASE("a missing checkpoint is an empty one, and the first update writes it",
          "[dra][checkpoint_store]") {
  World world;
  REQUIRE(world.store.refresh());
  CHECK(world.store.current().entries().empty());
  CHECK_FALSE(world.dir.exists("checkpoint.json"));

  REQUIRE(world.update([](Checkpoint&) { return ok(); }));
  CHECK(world.dir.read("checkpoint.json") ==
        R"({"checksum":1083090442,"v1":{},"v2":{"checksum":4166374854}})");
  struct stat found{};
  REQUIRE(::stat(world.dir.path("checkpoint.json").c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0600);
}

TEST_CASE("an update that changes nothing leaves the file alone", "[dra][checkpoint_store]") {
  World world;
  REQUIRE(world.update(start(uid, "a")));
  auto before = std::filesystem::last_write_time(world.dir.path("checkpoint.json"));
  struct stat first{}, second{};
  REQUIRE(::stat(world.dir.path("checkpoint.json").c_str(), &first) == 0);
  REQUIRE(world.update([](Checkpoint&) { return ok(); }));
  REQUIRE(::stat(world.dir.path("checkpoint.json").c_str(), &second) == 0);
  CHECK(first.st_ino == second.st_ino);
  CHECK(before == std::filesystem::last_write_time(world.dir.path("checkpoint.json")));
}

TEST_CASE("a refused change changes neither the file nor the copy", "[dra][checkpoint_store]") {
  World world;
  REQUIRE(world.update(start(uid, "a")));
  std::string before = world.dir.read("checkpoint.json");
  Result<void> refused = world.update([](Checkpoint& checkpoint) {
    checkpoint.erase(uid);
    return refuse("channel 0 is taken");
  });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text() == "channel 0 is taken");
  CHECK(world.store.current().find(uid));
  CHECK(world.dir.read("checkpoint.json") == before);
}

TEST_CASE("what another process wrote is read before the change", "[dra][checkpoint_store]") {
  World world;
  CheckpointStore other(world.dir.fd(), world.dir.path(), world.time);
  REQUIRE(world.update(start(uid, "mine")));
  std::optional<Result<void>> answer;
  world.begin(other, start(other_uid, "theirs"), &answer);
  REQUIRE(answer);
  REQUIRE(*answer);
  CHECK_FALSE(world.store.current().find(other_uid));

  REQUIRE(world.update([](Checkpoint& checkpoint) {
    checkpoint.erase(uid);
    return ok();
  }));
  CHECK(world.store.current().entries().size() == 1);
  CHECK(world.store.current().find(other_uid)->name == "theirs");
}

TEST_CASE("an update waits for the lock of another process and then goes on",
          "[dra][checkpoint_store]") {
  World world;
  Result<Fd> held = try_lock_file(world.dir.fd(), "pu.lock");
  REQUIRE(held);
  std::optional<Result<void>> answer;
  world.begin(world.store, start(uid, "a"), &answer);
  world.time.advance(5s);
  CHECK_FALSE(answer);
  held->reset();
  world.time.advance(100ms);
  REQUIRE(answer);
  CHECK(*answer);
  // The lock is free again.
  CHECK(try_lock_file(world.dir.fd(), "pu.lock"));
}

TEST_CASE("a lock that is never released is an error after ten seconds that names it",
          "[dra][checkpoint_store]") {
  World world;
  Result<Fd> held = try_lock_file(world.dir.fd(), "pu.lock");
  REQUIRE(held);
  std::optional<Result<void>> answer;
  world.begin(world.store, start(uid, "a"), &answer);
  for (int i = 0; i < 99; ++i) world.time.advance(100ms);
  CHECK_FALSE(answer);
  world.time.advance(100ms);
  REQUIRE(answer);
  REQUIRE_FALSE(*answer);
  CHECK(answer->error().code == Errc::locked);
  CHECK(answer->error().text().find("pu.lock") != std::string::npos);
  CHECK_FALSE(world.dir.exists("checkpoint.json"));
}

TEST_CASE("a corrupt file is an error that says so, and can be set aside",
          "[dra][checkpoint_store]") {
  World world;
  std::string content = GENERATE(as<std::string>{}, "", "{}", "{\"checksum\":1,\"v1\":{}}", "junk");
  world.dir.write("checkpoint.json", content);
  Result<void> read = world.store.refresh();
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::corrupt);
  CHECK(read.error().text().find(world.dir.path("checkpoint.json")) != std::string::npos);
  Result<void> updated = world.update(start(uid, "a"));
  REQUIRE_FALSE(updated);
  CHECK(updated.error().code == Errc::corrupt);
  CHECK(world.dir.read("checkpoint.json") == content);

  std::string kept = world.set_aside();
  CHECK(kept.starts_with(world.dir.path("checkpoint.json.corrupt-2")));
  CHECK_FALSE(world.dir.exists("checkpoint.json"));
  CHECK(world.dir.read(kept.substr(world.dir.path().size() + 1)) == content);
  REQUIRE(world.update(start(uid, "a")));
  CHECK(world.dir.exists("checkpoint.json"));
}

TEST_CASE("two corrupt files within a second are both kept", "[dra][checkpoint_store]") {
  World world;
  world.dir.write("checkpoint.json", "one");
  std::string first = world.set_aside();
  world.dir.write("checkpoint.json", "two");
  std::string second = world.set_aside();
  CHECK(first != second);
  CHECK(world.dir.read(first.substr(world.dir.path().size() + 1)) == "one");
  CHECK(world.dir.read(second.substr(world.dir.path().size() + 1)) == "two");
}

TEST_CASE("a directory in the place of the file is corrupt, and can be set aside",
          "[dra][checkpoint_store]") {
  World world;
  std::filesystem::create_directory(world.dir.path("checkpoint.json"));
  Result<void> read = world.store.refresh();
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Errc::corrupt);
  world.set_aside();
  CHECK(world.update(start(uid, "a")));
}

TEST_CASE("a file that vanishes while we run is written again from the copy",
          "[dra][checkpoint_store]") {
  World world;
  REQUIRE(world.update(start(uid, "a")));
  std::filesystem::remove(world.dir.path("checkpoint.json"));
  REQUIRE(world.store.refresh());
  CHECK(world.store.current().find(uid));
  REQUIRE(world.update(start(other_uid, "b")));
  CheckpointStore again(world.dir.fd(), world.dir.path(), world.time);
  REQUIRE(again.refresh());
  CHECK(again.current().entries().size() == 2);
}

TEST_CASE("a file that is corrupted while we run is set aside, and nothing is lost",
          "[dra][checkpoint_store]") {
  World world;
  std::string told;
  world.store.on_set_aside([&](std::string text) { told = std::move(text); });
  REQUIRE(world.update(start(uid, "a")));
  const std::string content = GENERATE(as<std::string>{}, "", "junk", "a directory");
  std::filesystem::remove(world.dir.path("checkpoint.json"));
  if (content == "a directory")
    std::filesystem::create_directory(world.dir.path("checkpoint.json"));
  else
    world.dir.write("checkpoint.json", content);
  REQUIRE(world.update([](Checkpoint&) { return ok(); }));
  CHECK(told.find("checkpoint.json.corrupt-2") != std::string::npos);
  REQUIRE(world.update(start(other_uid, "b")));
  CheckpointStore again(world.dir.fd(), world.dir.path(), world.time);
  REQUIRE(again.refresh());
  CHECK(again.current().entries().size() == 2);
}

TEST_CASE("a file that cannot be written is an error that names it and leaves the copy",
          "[dra][checkpoint_store]") {
  World world;
  REQUIRE(world.update(start(uid, "a")));
  std::string before = world.dir.read("checkpoint.json");
  // Every write now fails as on a full disk, with EFBIG instead of ENOSPC.
  struct rlimit old{}, none{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  none = old;
  none.rlim_cur = 16;
  ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  Result<void> updated = world.update(start(other_uid, "b"));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  REQUIRE_FALSE(updated);
  CHECK(updated.error().text().find("write " + world.dir.path("checkpoint.json")) == 0);
  CHECK(world.dir.read("checkpoint.json") == before);
  CHECK_FALSE(world.store.current().find(other_uid));
  CHECK(std::distance(std::filesystem::directory_iterator(world.dir.path()), {}) ==
        2);  // + pu.lock
  CHECK(world.update(start(other_uid, "b")));
}
