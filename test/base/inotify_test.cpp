#include "base/inotify.hpp"

#include "base/files.hpp"
#include "base/within.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"

#include <sys/stat.h>

#include <filesystem>

using namespace nvdra;
using fake::TempDir;

namespace {

struct Fixture {
  asio::io_context loop{1};
  RealTime time;
  TempDir dir;

  DirectoryWatch watch(const std::string& path) {
    Result<DirectoryWatch> opened = DirectoryWatch::open(loop.get_executor(), path);
    if (!opened) FAIL(opened.error().text());
    return *std::move(opened);
  }
  Result<void> changed(DirectoryWatch& watch, Duration limit = 10s) {
    return fake::run(loop, within(time, limit, watch.changed()));
  }
  // Nothing is queued: an inotify event is there as soon as the system call that caused it ended.
  bool quiet(DirectoryWatch& watch) {
    Result<void> change = changed(watch, 20ms);
    return !change && change.error().code == boost::system::errc::timed_out;
  }
};

}  // namespace

TEST_CASE("every kind of change in a watched directory is seen once", "[base][inotify]") {
  Fixture f;
  f.dir.write("old", "1");
  f.dir.write("sub/inside", "1");
  TempDir elsewhere;
  elsewhere.write("x", "1");
  DirectoryWatch watch = f.watch(f.dir.path());
  CHECK(f.quiet(watch));

  struct Change {
    const char* what;
    std::function<bool()> make;
  };
  std::vector<Change> all{
      {"created and written", [&] { return f.dir.write("new", "1"), true; }},
      {"replaced", [&] { return replace_file(f.dir.fd(), "new", "2", 0600).has_value(); }},
      {"deleted", [&] { return remove_file(f.dir.fd(), "new").has_value(); }},
      {"mode changed", [&] { return ::chmod(f.dir.path("old").c_str(), 0600) == 0; }},
      {"moved out",
       [&] { return ::rename(f.dir.path("old").c_str(), elsewhere.path("old").c_str()) == 0; }},
      {"moved in",
       [&] { return ::rename(elsewhere.path("x").c_str(), f.dir.path("x").c_str()) == 0; }},
      {"link made", [&] { return ::symlink("x", f.dir.path("link").c_str()) == 0; }},
      {"directory made", [&] { return ::mkdir(f.dir.path("d").c_str(), 0700) == 0; }},
  };
  for (const Change& change : all) {
    INFO(change.what);
    REQUIRE(change.make());
    CHECK(f.changed(watch));
    CHECK(f.quiet(watch));
  }
  f.dir.write("sub/inside", "2");
  CHECK(f.quiet(watch));
}

TEST_CASE("a watch that was cancelled sees what changed meanwhile", "[base][inotify]") {
  Fixture f;
  DirectoryWatch watch = f.watch(f.dir.path());
  CHECK(f.quiet(watch));
  f.dir.write("a", "1");
  CHECK(f.changed(watch));
}

TEST_CASE("a directory that is removed or renamed ends its watch for good", "[base][inotify]") {
  bool renamed = GENERATE(false, true);
  Fixture f;
  f.dir.write("sub/x", "");
  DirectoryWatch watch = f.watch(f.dir.path("sub"));
  if (renamed)
    std::filesystem::rename(f.dir.path("sub"), f.dir.path("other"));
  else
    std::filesystem::remove_all(f.dir.path("sub"));
  for (int i = 0; i < 2; ++i) {
    Result<void> change = f.changed(watch);
    REQUIRE_FALSE(change);
    CHECK(change.error().text() == "watch " + f.dir.path("sub") + ": the directory is gone");
  }
}

TEST_CASE("what is not a directory cannot be watched", "[base][inotify]") {
  Fixture f;
  f.dir.write("file", "");
  auto missing = DirectoryWatch::open(f.loop.get_executor(), f.dir.path("none"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == boost::system::errc::no_such_file_or_directory);
  CHECK(missing.error().text() == "watch " + f.dir.path("none") + ": No such file or directory");
  auto file = DirectoryWatch::open(f.loop.get_executor(), f.dir.path("file"));
  REQUIRE_FALSE(file);
  CHECK(file.error().code == boost::system::errc::not_a_directory);
}
