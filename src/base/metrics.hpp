// Metrics in Prometheus' text format 0.0.4. A registry belongs to the loop; gRPC's threads do not
// touch it.
//   Metrics metrics;
//   auto& requests = metrics.counter("nvdra_requests_total", "Requests.", {{"operation",
//   "prepare"}}); requests.add(); metrics.gauge("nvdra_things", "Things.", {}, [&] { return
//   double(things.size()); });
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nvdra {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
public:
  void add(double amount = 1) { value_ += amount; }
  double value() const { return value_; }

private:
  double value_ = 0;
};

class Gauge {
public:
  void set(double value) { value_ = value; }
  void add(double amount) { value_ += amount; }
  double value() const { return value_; }

private:
  double value_ = 0;
};

class Histogram {
public:
  explicit Histogram(std::vector<double> bounds);  // ascending upper bounds, without +Inf
  void observe(double value);

private:
  friend class Metrics;
  std::vector<double> bounds_;
  std::vector<double> counts_;  // per bound, and one for the rest
  double sum_ = 0;
};

// Series live as long as the registry. The same name and labels again give the same series; the
// same name with another type or help aborts.
class Metrics {
public:
  Counter& counter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, Labels labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                       Labels labels = {});
  // Asked at every scrape.
  void gauge(std::string_view name, std::string_view help, Labels labels,
             std::function<double()> value);
  void counter(std::string_view name, std::string_view help, Labels labels,
               std::function<double()> value);

  // Families sorted by name, series in order of creation; process_* of this process at the end
  // (resident memory, CPU seconds, open descriptors, threads, start time).
  std::string text() const;

private:
  struct Series {
    Labels labels;
    Counter counter;
    Gauge gauge;
    std::unique_ptr<Histogram> histogram;
    std::function<double()> value;
  };
  struct Family {
    std::string help;
    std::string type;
    std::list<Series> series;
  };
  Series& series(std::string_view name, std::string_view help, std::string_view type,
                 Labels labels);

  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace nvdra
