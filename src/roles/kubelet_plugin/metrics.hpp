// The plugin's metrics (node-side.md 13): names and labels are known to dashboards.
#pragma once

#include "base/metrics.hpp"
#include "base/time.hpp"
#include "dra/checkpoint.hpp"
#include "imex/gpu.hpp"

#include <functional>
#include <span>
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

  // nvdra_fabric_clique_changes_total, nvdra_fabric_mixed and nvdra_fabric_state, asked at every
  // scrape.
  struct Fabric {
    std::function<int()> changes;
    std::function<bool()> mixed;
    std::function<int()> state;  // fabric_state_number()
  };
  void watch_fabric(Fabric fabric);

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

// NVML's number of the state of the GPU that is furthest behind: 0 not supported, 1 not started,
// 2 in progress, 3 completed; -1 = no GPU is known (report 109).
int fabric_state_number(std::span<const imex::Gpu> gpus);

}  // namespace nvdra::roles::kubelet_plugin
