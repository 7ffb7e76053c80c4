#include "base/stack_dump.hpp"

#include "catch.hpp"
#include "fake/captured_log.hpp"
#include "fake/temp_dir.hpp"

#include <boost/asio/io_context.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <latch>
#include <thread>

using namespace nvdra;
using fake::TempDir;

namespace {

// Signals this process and lets the loop do what it does about it.
void signal_and_settle(asio::io_context& loop) {
  ::kill(::getpid(), SIGUSR2);
  loop.restart();
  loop.run_one_for(std::chrono::seconds(5));
  loop.poll();
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

TEST_CASE("SIGUSR2 writes the marker and every thread, overwriting the last dump",
          "[base][stack_dump]") {
  TempDir dir;
  fake::CapturedLog log;
  dir.write("dump", std::string(5'000'000, 'x'));
  asio::io_context loop;
  StackDump dump(loop.get_executor(), "main.RunPlugin", dir.path("dump"));
  std::latch named(1), release(1);
  std::thread other([&] {
    ::pthread_setname_np(::pthread_self(), "other-thread");
    named.count_down();
    release.wait();
  });
  named.wait();
  signal_and_settle(loop);
  release.count_down();
  other.join();

  std::string text = dir.read("dump");
  INFO(text);
  CHECK(text.starts_with("main.RunPlugin\npid " + std::to_string(::getpid()) + " at "));
  CHECK(text.find("thread " + std::to_string(::getpid()) + " ") != std::string::npos);
  CHECK(text.find(" other-thread\n") != std::string::npos);
  CHECK(count(text, "State:") >= 2);
  CHECK(text.find("xxx") == std::string::npos);
  CHECK(log.has("\"Wrote the state of all threads\" file=\"" + dir.path("dump") + "\""));

  dir.write("dump", "");
  signal_and_settle(loop);
  CHECK(dir.read("dump").starts_with("main.RunPlugin\n"));
}

TEST_CASE("a new dump file may be read by everybody the umask allows", "[base][stack_dump]") {
  TempDir dir;
  fake::CapturedLog log;
  asio::io_context loop;
  StackDump dump(loop.get_executor(), "m", dir.path("dump"));
  mode_t before = ::umask(022);
  signal_and_settle(loop);
  ::umask(before);
  struct stat found{};
  REQUIRE(::stat(dir.path("dump").c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0644);
}

TEST_CASE("what is no regular file in the dump's place is left alone", "[base][stack_dump]") {
  TempDir dir;
  fake::CapturedLog log;
  dir.write("victim", "precious");
  std::string what = GENERATE("link", "fifo", "directory");
  if (what == "link") std::filesystem::create_symlink("victim", dir.path("dump"));
  if (what == "fifo") REQUIRE(::mkfifo(dir.path("dump").c_str(), 0600) == 0);
  if (what == "directory") std::filesystem::create_directory(dir.path("dump"));
  asio::io_context loop;
  StackDump dump(loop.get_executor(), "the marker", dir.path("dump"));

  // The dump goes to stderr instead: into a file here.
  std::fflush(stderr);
  int kept = ::dup(STDERR_FILENO);
  REQUIRE(std::freopen(dir.path("stderr").c_str(), "w", stderr) != nullptr);
  signal_and_settle(loop);
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);

  CHECK(dir.read("stderr").starts_with("\nthe marker\n"));
  CHECK(dir.read("stderr").ends_with("\n"));
  CHECK(dir.read("victim") == "precious");
  CHECK_FALSE(log.has("Wrote the state"));
}

TEST_CASE("after stop the loop has nothing left to do", "[base][stack_dump]") {
  TempDir dir;
  asio::io_context loop;
  StackDump dump(loop.get_executor(), "m", dir.path("dump"));
  dump.stop();
  loop.run_for(std::chrono::seconds(5));
  CHECK(loop.stopped());
  CHECK_FALSE(dir.exists("dump"));
}
