#include "base/process.hpp"

#include "base/files.hpp"
#include "base/within.hpp"
#include "catch.hpp"
#include "fake/run_loop.hpp"
#include "fake/temp_dir.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/mount.h>
#include <sys/wait.h>

#include <charconv>
#include <csignal>
#include <filesystem>

using namespace nvdra;
using fake::TempDir;

namespace {

struct Fixture {
  asio::io_context loop{1};
  RealTime time;
  TempDir dir;

  Command shell(std::string script) { return {"/bin/sh", {"-c", std::move(script)}}; }
  Result<Output> run(const Command& command, const Limits& limits = {.time = 10s}) {
    return fake::run(loop, nvdra::run(command, time, limits));
  }
  Result<Child> start(const Command& command, bool pipe_output = false) {
    return nvdra::start(command, loop.get_executor(), pipe_output);
  }
  Exit wait(Child& child) {
    Result<Exit> exit = fake::run(loop, child.wait());
    REQUIRE(exit);
    return *exit;
  }
  // The number that a script wrote there, once it is there.
  pid_t pid_in(const std::string& name) {
    for (int tries = 0; tries < 1000; ++tries) {
      std::string text = dir.read(name);
      pid_t pid = 0;
      if (text.ends_with('\n') &&
          std::from_chars(text.data(), text.data() + text.size(), pid).ec == std::errc{})
        return pid;
      ::usleep(5000);
    }
    FAIL("no process number in " << name);
    return -1;
  }
};

Async<void> run_only(Command command, Time* time) {
  Result<Output> got = co_await nvdra::run(command, *time, {.time = 100s});
  (void)got;
}

bool alive(pid_t pid) {
  // A zombie whose parent has not reaped it yet is dead, too.
  Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return false;
  return stat->at(stat->rfind(')') + 2) != 'Z';
}

bool dies(pid_t pid) {
  for (int tries = 0; tries < 1000 && alive(pid); ++tries) ::usleep(5000);
  return !alive(pid);
}

}  // namespace

TEST_CASE("a short command gives its exit and both streams apart", "[base][process]") {
  Fixture f;
  Result<Output> got = f.run(f.shell("echo out; echo err >&2; exit 3"));
  REQUIRE(got);
  CHECK(got->exit.code == 3);
  CHECK_FALSE(got->exit.success());
  CHECK(got->exit.text() == "exit status 3");
  CHECK(got->out == "out\n");
  CHECK(got->err == "err\n");
  CHECK_FALSE(got->truncated);
}

TEST_CASE("a command killed by a signal says which", "[base][process]") {
  Fixture f;
  Result<Output> got = f.run(f.shell("kill -9 $$"));
  REQUIRE(got);
  CHECK(got->exit.signal == SIGKILL);
  CHECK(got->exit.text() == "killed by signal 9");
}

TEST_CASE("arguments and environment arrive unchanged, stdin is empty", "[base][process]") {
  Fixture f;
  Command command{"/bin/sh",
                  {"-c", "printf '%s|' \"$@\"; printf %s \"$A\"; cat", "sh", "a b", "", "$x"},
                  std::vector<std::string>{"A=1 2"}};
  Result<Output> got = f.run(command);
  REQUIRE(got);
  CHECK(got->out == "a b||$x|1 2");
}

TEST_CASE("a name is looked up in PATH, in that of the given environment", "[base][process]") {
  Fixture f;
  f.dir.write("bin/nvdra-tool", "#!/bin/sh\necho tool\n");
  f.dir.write("first/nvdra-tool", "not executable");
  std::filesystem::permissions(f.dir.path("bin/nvdra-tool"), std::filesystem::perms::owner_all);
  std::string path =
      "PATH=" + f.dir.path("none") + ":" + f.dir.path("first") + ":" + f.dir.path("bin") + ":/bin";
  Result<Output> got = f.run({"nvdra-tool", {}, std::vector<std::string>{path}});
  REQUIRE(got);
  CHECK(got->out == "tool\n");
  Result<Output> none = f.run({"nvdra-tool", {}});
  REQUIRE_FALSE(none);
  CHECK(none.error().text() == "start nvdra-tool: exec: No such file or directory");
}

TEST_CASE("a start that fails names its stage and reason", "[base][process]") {
  Fixture f;
  f.dir.write("plain", "text");
  struct Row {
    std::string program, root, sentence;
  };
  std::vector<Row> rows{
      {"/no/such", "", "start /no/such: exec: No such file or directory"},
      {f.dir.path("plain"), "", "start " + f.dir.path("plain") + ": exec: Permission denied"},
      {"", "", "start : exec: No such file or directory"},
  };
  if (::geteuid() == 0)
    rows.push_back({"/bin/sh", "/no/such", "start /bin/sh: chroot: No such file or directory"});
  for (const Row& row : rows) {
    Result<Child> child = f.start({row.program, {}, {}, row.root});
    REQUIRE_FALSE(child);
    CHECK(child.error().text() == row.sentence);
  }
  // The child that failed to become the program has been reaped.
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a command runs inside its root", "[base][process]") {
  Fixture f;
  if (::geteuid() != 0) {
    WARN("skipped: chroot needs root");
    return;
  }
  // The shell needs its libraries: the root is this file system, seen through a bind mount.
  std::string root = f.dir.path("root");
  std::filesystem::create_directory(root);
  if (::mount("/", root.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    WARN("skipped: this process may not bind-mount");
    return;
  }
  f.dir.write("marker", "x");
  Result<Output> got =
      f.run({"sh", {"-c", "pwd; test -e " + f.dir.path("marker") + " && echo seen"}, {}, root});
  Result<Output> outside =
      f.run({"sh", {"-c", "test -e " + f.dir.path("root/etc") + " && echo seen"}, {}, root});
  ::umount2(root.c_str(), MNT_DETACH);
  REQUIRE(got);
  CHECK(got->out.starts_with("/\n"));
  REQUIRE(outside);
  CHECK(outside->out.empty());  // the bind mount is not below itself
}

TEST_CASE("output beyond the limit is dropped without blocking the command", "[base][process]") {
  Fixture f;
  Result<Output> got = f.run(f.shell("head -c 1000000 /dev/zero | tr '\\0' x; echo done >&2"),
                             {.time = 10s, .output = 1000});
  REQUIRE(got);
  CHECK(got->exit.success());
  CHECK(got->out == std::string(1000, 'x'));
  CHECK(got->err == "done\n");
  CHECK(got->truncated);
}

TEST_CASE("a command that exceeds its time is ended with its grandchildren", "[base][process]") {
  Fixture f;
  // The shell and its child ignore TERM, so that only KILL ends them.
  Command command =
      f.shell("trap '' TERM; sleep 1000 & echo $! > " + f.dir.path("pid") + "; wait; wait");
  Instant before = Clock::now();
  Result<Output> got = f.run(command, {.time = 300ms});
  REQUIRE_FALSE(got);
  CHECK(got.error().code == boost::system::errc::timed_out);
  CHECK(got.error().text().starts_with("run /bin/sh: no end within 0.3 s: "));
  CHECK(Clock::now() - before >= 1300ms);
  CHECK(dies(f.pid_in("pid")));
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a command that obeys TERM is not kept waiting for KILL", "[base][process]") {
  Fixture f;
  Command command =
      f.shell("trap 'exit 0' TERM; echo $$ > " + f.dir.path("pid") + "; sleep 1000 & wait");
  Instant before = Clock::now();
  Result<Output> got = f.run(command, {.time = 300ms});
  REQUIRE_FALSE(got);
  CHECK(got.error().code == boost::system::errc::timed_out);
  CHECK(Clock::now() - before < 1200ms);
}

TEST_CASE("what a command leaves running in its group ends with it", "[base][process]") {
  Fixture f;
  Result<Output> got = f.run(f.shell("sleep 1000 & echo $! > " + f.dir.path("pid") + "; echo hi"));
  REQUIRE(got);
  CHECK(got->out == "hi\n");
  CHECK(dies(f.pid_in("pid")));
}

TEST_CASE("a daemon that left the group does not hold the run up", "[base][process]") {
  Fixture f;
  Result<Output> got = f.run(f.shell("setsid sh -c 'echo $$ > " + f.dir.path("pid") +
                                     "; exec sleep 1000' & while ! test -s " + f.dir.path("pid") +
                                     "; do sleep 0.01; done; echo hi"));
  pid_t daemon = f.pid_in("pid");
  REQUIRE(got);
  CHECK(got->out == "hi\n");
  CHECK(got->truncated);
  CHECK(alive(daemon));
  ::kill(daemon, SIGKILL);
}

TEST_CASE("cancelling a run ends the command and passes the cancellation on", "[base][process]") {
  Fixture f;
  asio::cancellation_signal cancel;
  Command command = f.shell("sleep 1000 & echo $! > " + f.dir.path("pid") + "; wait");
  std::exception_ptr thrown;
  bool over = false;
  asio::co_spawn(f.loop, run_only(command, &f.time),
                 asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr error) {
                   thrown = error;
                   over = true;
                 }));
  f.loop.poll();
  pid_t grandchild = f.pid_in("pid");
  cancel.emit(asio::cancellation_type::terminal);
  f.loop.run_for(10s);
  CHECK(over);
  REQUIRE(thrown);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), boost::system::system_error);
  CHECK(dies(grandchild));
}

TEST_CASE("a child can be awaited, signalled and awaited again", "[base][process]") {
  Fixture f;
  Result<Child> child = f.start(f.shell("trap 'exit 7' TERM; echo $$ > " + f.dir.path("pid") +
                                        "; while :; do sleep 0.05; done"));
  REQUIRE(child);
  CHECK(f.pid_in("pid") == child->pid());
  CHECK(child->output.get() == -1);
  REQUIRE(child->signal(SIGTERM));
  CHECK(f.wait(*child).code == 7);
  CHECK(f.wait(*child).code == 7);
  CHECK(child->signal(SIGTERM));
  CHECK(child->signal_group(SIGTERM));
}

TEST_CASE("waiting for a child can be cancelled and taken up again", "[base][process]") {
  Fixture f;
  Result<Child> child = f.start(f.shell("sleep 1000"));
  REQUIRE(child);
  Result<Exit> late = fake::run(f.loop, within(f.time, 50ms, child->wait()));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == boost::system::errc::timed_out);
  REQUIRE(child->signal_group(SIGKILL));
  CHECK(f.wait(*child).signal == SIGKILL);
}

TEST_CASE("a child that is dropped is killed with its group and reaped", "[base][process]") {
  Fixture f;
  pid_t grandchild = -1;
  pid_t pid = -1;
  {
    Result<Child> child =
        f.start(f.shell("sleep 1000 & echo $! > " + f.dir.path("pid") + "; wait"));
    REQUIRE(child);
    grandchild = f.pid_in("pid");
    pid = child->pid();
    Child moved = *std::move(child);
    CHECK(alive(pid));
  }
  CHECK_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid)));
  CHECK(dies(grandchild));
}

TEST_CASE("a child has its own group unless it must not", "[base][process]") {
  Fixture f;
  bool own = GENERATE(true, false);
  Command command = f.shell("exec sleep 1000");
  command.own_group = own;
  Result<Child> child = f.start(command);
  REQUIRE(child);
  CHECK(::getpgid(child->pid()) == (own ? child->pid() : ::getpgrp()));
  REQUIRE(child->signal_group(SIGKILL));
  CHECK(f.wait(*child).signal == SIGKILL);
}

TEST_CASE("a child starts with default signals and none of our descriptors", "[base][process]") {
  Fixture f;
  Fd leak(::open("/dev/null", O_RDONLY));  // on purpose without O_CLOEXEC
  auto before = ::signal(SIGUSR1, SIG_IGN);
  Result<Output> got =
      f.run({"/bin/sh", {"-c", "ls /proc/self/fd; grep -E 'SigIgn|SigBlk' /proc/self/status"}});
  ::signal(SIGUSR1, before);
  REQUIRE(got);
  INFO(got->out);
  CHECK(got->out.find("\n" + std::to_string(leak.get()) + "\n") == std::string::npos);
  CHECK(got->out.find("SigIgn:\t0000000000000000") != std::string::npos);
  CHECK(got->out.find("SigBlk:\t0000000000000000") != std::string::npos);
}

TEST_CASE("a child dies with the process that started it", "[base][process]") {
  Fixture f;
  pid_t middle = ::fork();
  REQUIRE(middle >= 0);
  if (middle == 0) {
    asio::io_context loop;
    Result<Child> child = start(f.shell("echo $$ > " + f.dir.path("pid") + "; exec sleep 1000"),
                                loop.get_executor(), false);
    if (child) f.pid_in("pid");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(middle, &status, 0) == middle);
  CHECK(dies(f.pid_in("pid")));
}

TEST_CASE("output is passed on line by line, the unfinished last line too", "[base][process]") {
  Fixture f;
  Result<Child> child = f.start(
      f.shell("echo one; printf '\\n'; echo two >&2; head -c 70000 /dev/zero | tr '\\0' x; echo; "
              "printf last"),
      true);
  REQUIRE(child);
  std::vector<std::string> lines;
  Result<void> read =
      fake::run(f.loop, each_line(std::move(child->output),
                                  [&](std::string_view line) { lines.emplace_back(line); }));
  REQUIRE(read);
  CHECK(f.wait(*child).success());
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == "one");
  CHECK(lines[1].empty());
  CHECK(lines[2] == "two");
  CHECK(lines[3] == std::string(65536, 'x'));
  CHECK(lines[4] == "last");
}
