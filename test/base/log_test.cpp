#include "base/log.hpp"

#include "base/json.hpp"
#include "catch.hpp"
#include "fake/captured_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <regex>
#include <thread>

using namespace nvdra;
using fake::CapturedLog;

namespace {

// What follows "] " of a text line.
std::string body(const std::string& line) {
  return line.substr(line.find("] ") + 2);
}

// Sends one stream of this process into a pipe while it lives.
class Diverted {
public:
  explicit Diverted(int stream) : stream_(stream), kept_(::dup(stream)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    read_ = ends[0];
    ::dup2(ends[1], stream);
    ::close(ends[1]);
  }
  ~Diverted() {
    restore();
    ::close(read_);
  }
  std::string taken() {
    restore();
    std::string all(65536, '\0');
    ssize_t size = ::read(read_, all.data(), all.size());
    all.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return all;
  }

private:
  void restore() {
    if (kept_ < 0) return;
    ::dup2(kept_, stream_);
    ::close(kept_);
    kept_ = -1;
  }
  int stream_;
  int kept_;
  int read_;
};

}  // namespace

TEST_CASE("a text line has klog's header and the fields behind the quoted message", "[base][log]") {
  CapturedLog log;
  LOG_INFO(2, "Caches populated",
           {{"type", "ComputeDomain"}, {"count", 3}, {"ready", true}, {"ratio", 0.5}});
  REQUIRE(log.lines().size() == 1);
  const std::string line = log.lines()[0];
  INFO(line);
  CHECK(std::regex_match(
      line,
      std::regex(R"(I[01]\d[0-3]\d \d\d:\d\d:\d\d\.\d{6} [ \d]{6}\d log_test\.cpp:\d+\] .*)")));
  CHECK(line.substr(22, 7) == fmt::format("{:7}", ::gettid()));
  CHECK(body(line) ==
        R"("Caches populated" type="ComputeDomain" count=3 ready=true ratio=0.500000)");
}

TEST_CASE("each severity has its letter, and errors are written at every verbosity",
          "[base][log]") {
  CapturedLog log(log::Options{});
  LOG_INFO(0, "a");
  LOG_WARNING("b");
  LOG_ERROR("c", {{"err", "no route"}});
  LOG_INFO(1, "not at verbosity 0");
  std::vector<std::string> lines = log.lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0][0] == 'I');
  CHECK(lines[1][0] == 'W');
  CHECK(lines[2][0] == 'E');
  CHECK(body(lines[2]) == R"("c" err="no route")");
}

TEST_CASE("a plain message is neither quoted nor able to forge a second line", "[base][log]") {
  CapturedLog log;
  LOG_INFO(0, log::Plain{"unknown field \"x\"\nE0101 forged"});
  REQUIRE(log.lines().size() == 1);
  CHECK(body(log.lines()[0]) == "unknown field \"x\"\\nE0101 forged");
}

TEST_CASE("quoted values escape what would end them, and bytes that are not UTF-8", "[base][log]") {
  struct Row {
    const char* why;
    std::string value, expected;
  };
  const Row row = GENERATE(values<Row>({
      {"quote and backslash", R"(a"b\c)", R"("a\"b\\c")"},
      {"newline, tab", "a\n\tb\r", R"("a\n\tb\r")"},
      {"escape sequence of a terminal", "\x1b[31m", R"("\x1b[31m")"},
      {"valid UTF-8 stays", "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
      {"a stray byte", "a\xff", R"("a\xff")"},
      {"an overlong slash", "\xc0\xaf", R"("\xc0\xaf")"},
      {"half a sequence", "\xe2\x82", R"("\xe2\x82")"},
  }));
  INFO(row.why);
  CapturedLog log;
  LOG_INFO(0, "m", {{"k", row.value}});
  CHECK(body(log.lines()[0]) == "\"m\" k=" + row.expected);
}

TEST_CASE("a JSON line is one object with ts, caller, msg and v, and errors have no v",
          "[base][log]") {
  CapturedLog log({.verbosity = 2, .format = log::Format::json});
  LOG_INFO(2, "two \"words\"\n", {{"name", "a\xff"}, {"n", 7}, {"up", false}});
  LOG_ERROR("failed", {{"err", "x"}, {"n", std::numeric_limits<double>::quiet_NaN()}});
  std::vector<std::string> lines = log.lines();
  REQUIRE(lines.size() == 2);
  INFO(lines[0]);
  boost::system::error_code failed;
  Json info = boost::json::parse(lines[0], failed);
  REQUIRE_FALSE(failed);
  CHECK(text_or_empty(info, "msg") == "two \"words\"\n");
  CHECK(text_or_empty(info, "name") == "a\xef\xbf\xbd");
  CHECK(int_or(info, "v", -1) == 2);
  CHECK(int_or(info, "n", -1) == 7);
  CHECK(bool_or(info, "up", true) == false);
  CHECK(std::regex_match(std::string(text_or_empty(info, "caller")),
                         std::regex(R"(base/log_test\.cpp:\d+)")));
  CHECK(std::regex_search(lines[0], std::regex(R"(^\{"ts":\d{13}\.\d{3},)")));
  Json error = boost::json::parse(lines[1], failed);
  REQUIRE_FALSE(failed);
  CHECK(find(error, "v") == nullptr);
  CHECK(text_or_empty(error, "n").find("nan") != std::string_view::npos);
}

TEST_CASE("vmodule raises the verbosity of the files it names", "[base][log]") {
  struct Row {
    const char* vmodule;
    bool shown;
  };
  const Row row = GENERATE(values<Row>({
      {"log_test=4", true},
      {"log_test=3", false},
      {"other=9,log_*=4", true},
      {"log?test=4,", true},
      {"*=4", true},
      {"log=4", false},
      {"*_tes=4", false},
  }));
  INFO(row.vmodule);
  CapturedLog log({.verbosity = 0, .vmodule = row.vmodule});
  REQUIRE(log.configured());
  LOG_INFO(4, "m");
  CHECK(log.has("\"m\"") == row.shown);
}

TEST_CASE("a bad vmodule item is refused by name and changes nothing", "[base][log]") {
  const std::string item = GENERATE("reflector", "=3", "a=", "a=x", "a=-1", "a=99999999999");
  CapturedLog log({.verbosity = 5});
  Result<void> configured = log::configure({.verbosity = 0, .vmodule = "b=1," + item});
  REQUIRE_FALSE(configured);
  CHECK(configured.error().text() ==
        "item \"" + item +
            "\" of vmodule is not pattern=N with N from 0 to 2147483647, for example reflector=4");
  CHECK(log::enabled(5, "x.cpp"));
}

TEST_CASE("lines go to stderr, and with a split stream only errors do", "[base][log]") {
  bool split = GENERATE(false, true);
  REQUIRE(log::configure({.split_stream = split}));
  Diverted out(STDOUT_FILENO);
  Diverted err(STDERR_FILENO);
  LOG_INFO(0, "information");
  LOG_ERROR("trouble");
  std::string on_err = err.taken(), on_out = out.taken();
  REQUIRE(log::configure({}));
  CHECK((on_err.find("\"information\"\n") != std::string::npos) == !split);
  CHECK((on_out.find("\"information\"\n") != std::string::npos) == split);
  CHECK(on_err.find("\"trouble\"\n") != std::string::npos);
}

TEST_CASE("threads that log at once get whole lines", "[base][log]") {
  REQUIRE(log::configure({}));
  Diverted err(STDERR_FILENO);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) LOG_INFO(0, "whole", {{"filler", "0123456789"}});
    });
  for (std::thread& thread : threads) thread.join();
  std::string all = err.taken();
  std::regex line(R"(I[^\n]*\] "whole" filler="0123456789"\n)");
  auto found = std::distance(std::sregex_iterator(all.begin(), all.end(), line), {});
  CHECK(found == 400);
  CHECK(std::ranges::count(all, '\n') == 400);
}
