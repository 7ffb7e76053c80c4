// A pod's status as its kubelet reports it. Pure.
#pragma once

#include "base/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace nvdra::sandbox {

// One container, now and before.
struct ContainerState {
  enum class Kind { waiting, running, terminated };
  std::string name;
  std::string image;
  Kind kind = Kind::waiting;
  std::string reason = "ContainerCreating";  // of waiting and terminated
  std::string message = {};
  std::string started = {};   // RFC 3339
  std::string finished = {};  // of terminated
  int exit_code = 0;
  int restarts = 0;
  std::string id = {};
  bool has_started = false;  // of running: its startup probe has succeeded, or it has none
  bool ready = false;        // of running: so says its readiness probe, or it has none
  Json last = {};            // the last terminated state, once it has been restarted
};

struct PodReport {
  std::string address;  // of the pod; "" = it has none yet
  std::string host;     // of its node
  std::string now;
  std::string started;   // when the kubelet first saw the pod
  bool sandbox = false;  // its containers can be started
  std::vector<ContainerState> containers;
};

// "Pending", "Running", "Succeeded" or "Failed". Ended containers that will be restarted count as
// running.
std::string pod_phase(const PodReport& report, std::string_view restart_policy);

// True when a container that ended so is started again.
bool restarts(std::string_view restart_policy, int exit_code);

// The terminated container's state, as it stands in its status.
Json terminated_state(const ContainerState& state);

// `pod` with the status of the report; other conditions and fields of its status stay.
Json with_status(Json pod, const PodReport& report);

}  // namespace nvdra::sandbox
