#include "base/metrics.hpp"

#include "catch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <limits>
#include <sstream>

using namespace nvdra;

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// The value of a series without labels; NaN when there is none.
double value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  return std::numeric_limits<double>::quiet_NaN();
}

// Without the process's own metrics, which come last.
std::string own_part(const Metrics& metrics) {
  std::string text = metrics.text();
  return text.substr(0, text.find("# HELP process_"));
}

}  // namespace

TEST_CASE("counters, gauges and histograms appear with help and type", "[base][metrics]") {
  Metrics metrics;
  Counter& requests = metrics.counter("requests_total", "Requests.", {{"operation", "prepare"}});
  metrics.counter("requests_total", "Requests.", {{"operation", "unprepare"}});
  requests.add();
  requests.add(2);
  metrics.gauge("inflight", "In flight.").set(-1.5);
  Histogram& seconds = metrics.histogram("seconds", "Time.", {0.05, 0.1, 12.8}, {{"driver", "d"}});
  for (double value : {0.05, 0.06, 99.0}) seconds.observe(value);

  CHECK(own_part(metrics) ==
        "# HELP inflight In flight.\n"
        "# TYPE inflight gauge\n"
        "inflight -1.5\n"
        "# HELP requests_total Requests.\n"
        "# TYPE requests_total counter\n"
        "requests_total{operation=\"prepare\"} 3\n"
        "requests_total{operation=\"unprepare\"} 0\n"
        "# HELP seconds Time.\n"
        "# TYPE seconds histogram\n"
        "seconds_bucket{driver=\"d\",le=\"0.05\"} 1\n"
        "seconds_bucket{driver=\"d\",le=\"0.1\"} 2\n"
        "seconds_bucket{driver=\"d\",le=\"12.8\"} 2\n"
        "seconds_bucket{driver=\"d\",le=\"+Inf\"} 3\n"
        "seconds_sum{driver=\"d\"} 99.11\n"
        "seconds_count{driver=\"d\"} 3\n");
}

TEST_CASE("the same name and labels are the same series", "[base][metrics]") {
  Metrics metrics;
  Counter& first = metrics.counter("a_total", "A.", {{"x", "1"}});
  first.add();
  for (int i = 0; i < 100; ++i) metrics.counter("a_total", "A.", {{"x", std::to_string(i)}});
  CHECK(&metrics.counter("a_total", "A.", {{"x", "1"}}) == &first);
  CHECK(metrics.counter("a_total", "A.", {{"x", "1"}}).value() == 1);
}

TEST_CASE("help and label values are escaped", "[base][metrics]") {
  Metrics metrics;
  metrics.gauge("g", "back\\slash\nnew \"line\"", {{"path", "a\\b\"c\nd"}}).set(1);
  CHECK(own_part(metrics) ==
        "# HELP g back\\\\slash\\nnew \"line\"\n"
        "# TYPE g gauge\n"
        "g{path=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST_CASE("a value given as a function is asked at every scrape", "[base][metrics]") {
  Metrics metrics;
  double value = 1;
  metrics.gauge("g", "G.", {}, [&] { return value; });
  metrics.counter("c_total", "C.", {}, [&] { return value * 10; });
  CHECK(value_of(metrics.text(), "g") == 1);
  value = 2;
  CHECK(value_of(metrics.text(), "g") == 2);
  CHECK(value_of(metrics.text(), "c_total") == 20);
}

TEST_CASE("numbers are written so that they read back the same", "[base][metrics]") {
  struct Row {
    double value;
    std::string expected;
  };
  const Row row = GENERATE(values<Row>({
      {0, "0"},
      {1e6, "1000000"},
      {1e20, "1e+20"},
      {0.1, "0.1"},
      {std::numeric_limits<double>::infinity(), "+Inf"},
      {-std::numeric_limits<double>::infinity(), "-Inf"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"},
  }));
  Metrics metrics;
  metrics.gauge("g", "G.").set(row.value);
  CHECK(has_line(metrics.text(), "g " + row.expected));
}

TEST_CASE("the process's own numbers are there and true", "[base][metrics]") {
  Metrics metrics;
  std::string before = metrics.text();
  CHECK(has_line(before, "# TYPE process_cpu_seconds_total counter"));
  CHECK(value_of(before, "process_resident_memory_bytes") > 1e6);
  CHECK(value_of(before, "process_virtual_memory_bytes") >
        value_of(before, "process_resident_memory_bytes"));
  CHECK(value_of(before, "process_cpu_seconds_total") >= 0);
  CHECK(value_of(before, "process_threads") >= 1);
  double age =
      static_cast<double>(::time(nullptr)) - value_of(before, "process_start_time_seconds");
  CHECK(age > -2);
  CHECK(age < 3600);

  int extra = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::string after = metrics.text();
  ::close(extra);
  CHECK(value_of(after, "process_open_fds") == value_of(before, "process_open_fds") + 1);
}
