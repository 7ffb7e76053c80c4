// The plugin's metrics (node-side.md 13): names and labels are known to dashboards.
#pragma once

#include "base/metrics.hpp"
#include "base/time.hpp"
#include "dra/checkpoint.hpp"

#include <functional>
#include <string>

namespace nvdra::roles::kubelet_plugin {

class Metrics {
public:
  enum class Operation { prepare, unprepare };

  // Every series exists with 0 from the start.
  Metrics(Time& time, std::string node);

  // One call in work; its end is the end of this object. Waiting counts as in flight (18.3 no. 56).
  class Running {
  public:
    Running(Metrics& metrics, Operation operation);
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running();
    void succeeded();

  private:
    Metrics& metrics_;
    Operation operation_;
    Instant begun_;
  };
  Running begin(Operation operation) { return Running(*this, operation); }

  void prepare_failed() { prepare_errors_->add(); }
  void unprepare_failed() { unprepare_errors_->add(); }
  void count_devices(const dra::Checkpoint& checkpoint);

  // nvdra_fabric_clique_changes_total and nvdra_fabric_mixed, asked at every scrape.
  void watch_fabric(std::function<int()> changes, std::function<bool()> mixed);

  nvdra::Metrics& registry() { return registry_; }

private:
  struct Series {
    Counter* requests;
    Histogram* duration;
    Gauge* in_flight;
  };
  Series& series(Operation operation) {
    return operation == Operation::prepare ? prepare_ : unprepare_;
  }
  Series make(const std::string& operation);

  Time& time_;
  nvdra::Metrics registry_;
  Series prepare_;
  Series unprepare_;
  Counter* prepare_errors_;
  Counter* unprepare_errors_;
  Gauge* channels_;
  Gauge* daemons_;
};

}  // namespace nvdra::roles::kubelet_plugin
