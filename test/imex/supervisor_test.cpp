#include "imex/supervisor.hpp"

#include "base/files.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"
#include "fake/time.hpp"
#include "imex/child_state.hpp"
#include "imex/refresh.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/detached.hpp>

#include <sched.h>

#include <csignal>
#include <sstream>

using namespace nvdra;
using namespace nvdra::imex;

namespace {

const Instant now = Instant{} + 1000s;

Standing standing(Phase phase, Duration ago = 0s, std::uint64_t edition = 1, int crashes = 0) {
  return {phase, now - ago, edition, crashes, now};
}

// A process that was killed may still be waited for by its parent: state Z.
bool runs(pid_t pid) {
  const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat && stat->find(") Z ") == std::string::npos;
}

// A supervised shell script, with the turns that were told.
struct Supervised {
  explicit Supervised(const std::string& script)
      : supervisor(loop.get_executor(), time,
                   {.command = {.program = "/bin/sh", .arguments = {"-c", script}},
                    .line = [this](std::string_view line) { lines.emplace_back(line); },
                    .story = [this](const Turn& turn) { told.push_back(turn); }}) {
    asio::co_spawn(loop, supervisor.run(),
                   asio::bind_cancellation_slot(stop.slot(), asio::detached));
  }
  ~Supervised() {
    stop.emit(asio::cancellation_type::terminal);
    fake::run(loop, stopped(&supervisor));
  }
  static Async<int> stopped(Supervisor* supervisor) {
    co_await supervisor->stop();
    co_return 0;
  }
  template <class Condition>
  void until(Condition condition) {
    const Instant limit = Clock::now() + 20s;
    while (!condition() && Clock::now() < limit) {
      loop.restart();
      loop.run_one_for(10ms);
    }
    REQUIRE(condition());
  }
  bool has(std::string_view line) const { return std::ranges::find(lines, line) != lines.end(); }
  std::size_t count(Turn::What what) const {
    return static_cast<std::size_t>(std::ranges::count(told, what, &Turn::what));
  }

  asio::io_context loop{1};
  RealTime time;
  asio::cancellation_signal stop;
  std::vector<std::string> lines;
  std::vector<Turn> told;
  Supervisor supervisor;
};

}  // namespace

TEST_CASE("what is due follows from where the child stands and what is wished",
          "[imex][supervisor]") {
  struct Row {
    const char* why;
    Standing standing;
    Wish wish;
    Deed expected;
  };
  const Row row = GENERATE(values<Row>({
      {"nobody wants it", standing(Phase::idle), {false, 1}, Deed::nothing},
      {"wanted", standing(Phase::idle), {true, 1}, Deed::start},
      {"runs as wanted", standing(Phase::up), {true, 1}, Deed::nothing},
      {"not wanted any more", standing(Phase::up), {false, 1}, Deed::term},
      {"runs with old settings", standing(Phase::up), {true, 2}, Deed::term},
      {"may still end", standing(Phase::ending, 9s), {true, 2}, Deed::nothing},
      {"has had its grace", standing(Phase::ending, 10s), {true, 2}, Deed::kill},
      {"is killed once", standing(Phase::killed, 60s), {true, 2}, Deed::nothing},
      {"the pause is over", standing(Phase::waiting), {true, 1}, Deed::start},
      {"new settings end the pause", {Phase::waiting, now, 1, 4, now + 8s}, {true, 2}, Deed::start},
      {"still pausing", {Phase::waiting, now, 1, 4, now + 8s}, {true, 1}, Deed::nothing},
      {"crashed and not wanted", standing(Phase::waiting), {false, 1}, Deed::nothing},
  }));
  INFO(row.why);
  CHECK(next(row.standing, row.wish, now).deed == row.expected);
}

TEST_CASE("a crash loop is slowed down, and a long life forgives", "[imex][supervisor]") {
  CHECK(crash_pause(1) == 100ms);
  CHECK(crash_pause(2) == 1s);
  CHECK(crash_pause(3) == 2s);
  CHECK(crash_pause(6) == 16s);
  CHECK(crash_pause(7) == 30s);
  CHECK(crash_pause(1000) == 30s);
  const Standing crashed = after_end(standing(Phase::up, 59s, 1, 3), now);
  CHECK(crashed.phase == Phase::waiting);
  CHECK(crashed.crashes == 4);
  CHECK(crashed.again == now + crash_pause(4));
  CHECK(after_end(standing(Phase::up, 60s, 1, 3), now).crashes == 1);
}

TEST_CASE("an end that was asked for is no crash", "[imex][supervisor]") {
  for (const Phase phase : {Phase::ending, Phase::killed}) {
    const Standing ended = after_end(standing(phase, 1s, 1, 3), now);
    CHECK(ended.phase == Phase::idle);
    CHECK(ended.crashes == 0);
  }
}

TEST_CASE("a child that crashes is started again", "[imex][supervisor]") {
  Supervised it("echo hello; kill -9 $$");
  it.supervisor.wish({true, 1});
  it.until([&] { return it.count(Turn::What::started) >= 2; });
  CHECK(it.has("hello"));
  CHECK(it.count(Turn::What::crashed) >= 1);
  CHECK(it.told[1].exit.signal == SIGKILL);
}

TEST_CASE("another edition restarts a running child exactly once", "[imex][supervisor]") {
  Supervised it("echo up; exec sleep 1000");
  it.supervisor.wish({true, 1});
  it.until([&] { return it.has("up"); });
  const pid_t first = it.supervisor.pid();
  it.supervisor.wish({true, 2});
  it.until([&] { return it.supervisor.up() && it.supervisor.pid() != first; });
  CHECK(it.count(Turn::What::started) == 2);
  CHECK(it.count(Turn::What::told_to_end) == 1);
  CHECK(it.count(Turn::What::crashed) == 0);
}

TEST_CASE("stopping ends the child and what it started", "[imex][supervisor]") {
  const fake::TempDir files;
  pid_t grandchild = 0;
  {
    Supervised it("trap 'exit 3' TERM; sleep 1000 & echo $! > " + files.path("pid") +
                  "; echo up; wait");
    it.supervisor.wish({true, 1});
    it.until([&] { return it.has("up"); });
    std::istringstream(files.read("pid")) >> grandchild;
  }
  REQUIRE(grandchild > 0);
  // The kernel takes a moment over a kill.
  const Instant limit = Clock::now() + 10s;
  while (runs(grandchild) && Clock::now() < limit) ::sched_yield();
  CHECK_FALSE(runs(grandchild));
}

TEST_CASE("a program that is missing is told, and tried again with pauses", "[imex][supervisor]") {
  asio::io_context loop(1);
  RealTime time;
  std::vector<Turn> told;
  Supervisor supervisor(loop.get_executor(), time,
                        {.command = {.program = "/nowhere/nvidia-imex", .arguments = {}},
                         .line = [](std::string_view) {},
                         .story = [&](const Turn& turn) { told.push_back(turn); }});
  asio::cancellation_signal stop;
  asio::co_spawn(loop, supervisor.run(), asio::bind_cancellation_slot(stop.slot(), asio::detached));
  supervisor.wish({true, 1});
  while (told.size() < 2) loop.run_one_for(50ms);
  CHECK(told[0].what == Turn::What::not_started);
  CHECK_THAT(told[0].why, Catch::Contains("/nowhere/nvidia-imex"));
  CHECK(told[1].pause == 1s);
  stop.emit(asio::cancellation_type::terminal);
  fake::run(loop, Supervised::stopped(&supervisor));
}

TEST_CASE("the next signal is due when the window of the last one is over", "[imex][refresh]") {
  CHECK(refresh_due(std::nullopt, now) == now);
  CHECK(refresh_due(now, now + 1s) == now + 5s);
  CHECK(refresh_due(now, now + 9s) == now + 9s);
}

TEST_CASE("of three changes in three seconds two signals are sent, and none is lost",
          "[imex][refresh]") {
  Supervised it("trap 'echo refreshed' USR1; echo able; while :; do sleep 0.02; done");
  fake::FakeTime time(it.loop);
  Refresher refresher(it.loop.get_executor(), time, it.supervisor);
  asio::cancellation_signal stop;
  asio::co_spawn(it.loop, refresher.run(),
                 asio::bind_cancellation_slot(stop.slot(), asio::detached));
  it.supervisor.wish({true, 1});
  it.until([&] { return it.has("able"); });
  for (int change = 0; change < 3; ++change) {
    refresher.want();
    time.advance(1s);
  }
  CHECK(refresher.sent() == 1);
  time.advance(1s);
  CHECK(refresher.sent() == 1);
  time.advance(1s);
  CHECK(refresher.sent() == 2);
  time.advance(60s);
  CHECK(refresher.sent() == 2);
  stop.emit(asio::cancellation_type::terminal);
  time.settle();
}

TEST_CASE("the kernel says whether a process survives a signal", "[imex][refresh]") {
  const std::string caught = "Name:\tx\nSigBlk:\t0000000000000000\nSigCgt:\t0000000000000200\n";
  const std::string deadly = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t00\n";
  CHECK(survives(caught, SIGUSR1));
  CHECK_FALSE(survives(caught, SIGUSR2));
  CHECK_FALSE(survives(deadly, SIGUSR1));
  CHECK(survives(deadly, SIGHUP));
  CHECK_FALSE(survives("", SIGUSR1));
  CHECK_FALSE(survives("SigBlk:\tffffffffffffffff\nSigCgt:\t00\n", SIGUSR1));
}

TEST_CASE("a process that cannot take the signal yet gets it once it can", "[imex][refresh]") {
  const fake::TempDir files;
  Supervised it("echo up; while ! test -e " + files.path("go") +
                "; do sleep 0.02; done; trap 'echo refreshed' USR1; echo able; "
                "while :; do sleep 0.02; done");
  Refresher refresher(it.loop.get_executor(), it.time, it.supervisor);
  asio::cancellation_signal stop;
  asio::co_spawn(it.loop, refresher.run(),
                 asio::bind_cancellation_slot(stop.slot(), asio::detached));
  it.supervisor.wish({true, 1});
  it.until([&] { return it.has("up"); });
  refresher.want();
  const Instant later = Clock::now() + 300ms;
  it.until([&] { return Clock::now() > later; });
  CHECK(refresher.sent() == 0);
  CHECK(it.supervisor.up());
  files.write("go", "");
  it.until([&] { return it.has("refreshed"); });
  CHECK(refresher.sent() == 1);
  CHECK(it.count(Turn::What::crashed) == 0);
  stop.emit(asio::cancellation_type::terminal);
  it.until([&] { return true; });
  it.loop.restart();
  it.loop.poll();
}

TEST_CASE("a tool that hangs is an answer within the limit, and so is one that fails",
          "[imex][state]") {
  struct Row {
    const char* script;
    bool ready;
    const char* word;
    const char* trouble;
  };
  const Row row = GENERATE(values<Row>({
      {"echo READY", true, "READY", ""},
      {"echo careful; echo READY", true, "READY", ""},
      {"echo NOT_READY", false, "NOT_READY", ""},
      {"echo READY; exit 1", false, "", "failed (exit status 1)"},
      {"sleep 60", false, "", "no answer within 0.2 s"},
      {":", false, "", "printed nothing"},
  }));
  asio::io_context loop(1);
  RealTime time;
  const Question question{.command = {.program = "/bin/sh", .arguments = {"-c", row.script}},
                          .limit = std::string_view(row.script) == "sleep 60" ? 200ms : 20000ms};
  const Answer answer = fake::run(loop, ask(question, time));
  INFO(row.script);
  CHECK(answer.ready == row.ready);
  CHECK(answer.word == row.word);
  CHECK_THAT(answer.trouble, Catch::Contains(row.trouble));
}

TEST_CASE("nvidia-imex is asked often at first, rarely when it is READY", "[imex][state]") {
  CHECK(next_question(false, 0s) == 20ms);
  CHECK(next_question(false, 4s) == 250ms);
  CHECK(next_question(false, 1h) == 1s);
  CHECK(next_question(true, 0s) == 10s);
}
