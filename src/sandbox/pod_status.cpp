#include "sandbox/pod_status.hpp"

#include "sandbox/controllers_base.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

using Kind = ContainerState::Kind;

Json state_of(const ContainerState& state) {
  switch (state.kind) {
    case Kind::waiting: {
      JsonObject waiting{{"reason", state.reason}};
      if (!state.message.empty()) waiting["message"] = state.message;
      return JsonObject{{"waiting", std::move(waiting)}};
    }
    case Kind::running: return JsonObject{{"running", JsonObject{{"startedAt", state.started}}}};
    case Kind::terminated: return terminated_state(state);
  }
  __builtin_unreachable();
}

Json container_status(const ContainerState& state) {
  const bool running = state.kind == Kind::running;
  JsonObject status{{"name", state.name},
                    {"image", state.image},
                    {"imageID", running ? state.image : ""},
                    {"containerID", state.id},
                    {"ready", running && state.ready},
                    {"started", running && state.has_started},
                    {"restartCount", state.restarts},
                    {"state", state_of(state)},
                    {"lastState", state.last.is_object() ? state.last : Json(JsonObject{})}};
  return status;
}

void put_condition(Json& pod, std::string_view type, bool holds, std::string_view reason,
                   std::string message, std::string_view now) {
  JsonObject condition{{"type", type}, {"status", holds ? "True" : "False"}};
  if (!holds && !reason.empty()) condition["reason"] = reason;
  if (!holds && !message.empty()) condition["message"] = message;
  set_condition(pod, std::move(condition), now);
}

}  // namespace

Json terminated_state(const ContainerState& state) {
  JsonObject end{{"exitCode", state.exit_code},
                 {"reason", state.reason},
                 {"startedAt", state.started},
                 {"finishedAt", state.finished},
                 {"containerID", state.id}};
  if (!state.message.empty()) end["message"] = state.message;
  return JsonObject{{"terminated", std::move(end)}};
}

bool restarts(std::string_view restart_policy, int exit_code) {
  if (restart_policy == "Never") return false;
  return restart_policy != "OnFailure" || exit_code != 0;
}

std::string pod_phase(const PodReport& report, std::string_view restart_policy) {
  const auto is = [&](Kind kind) {
    return [kind](const ContainerState& state) { return state.kind == kind; };
  };
  const auto for_good = [&](const ContainerState& state) {
    return state.kind == Kind::terminated && !restarts(restart_policy, state.exit_code);
  };
  const auto fresh = [](const ContainerState& state) {
    return state.kind == Kind::waiting && state.restarts == 0 && !state.last.is_object();
  };
  const auto& all = report.containers;
  if (!all.empty() && std::ranges::all_of(all, for_good)) {
    const bool good = std::ranges::all_of(all, [](const auto& s) { return s.exit_code == 0; });
    return good ? "Succeeded" : "Failed";
  }
  if (std::ranges::any_of(all, is(Kind::running))) return "Running";
  return std::ranges::any_of(all, fresh) || all.empty() ? "Pending" : "Running";
}

Json with_status(Json pod, const PodReport& report) {
  const std::string policy(text_or_empty(pod, "spec/restartPolicy"));
  std::vector<std::string> unready;
  JsonArray containers;
  for (const ContainerState& state : report.containers) {
    if (state.kind != Kind::running || !state.ready) unready.push_back(state.name);
    containers.push_back(container_status(state));
  }
  const std::string phase = pod_phase(report, policy);
  const bool ended = phase == "Succeeded" || phase == "Failed";
  const std::string_view reason = phase == "Succeeded" ? "PodCompleted"
                                  : phase == "Failed"  ? "PodFailed"
                                                       : "ContainersNotReady";
  std::string message;
  if (!ended)
    message = fmt::format("containers with unready status: [{}]", fmt::join(unready, " "));
  put_condition(pod, "PodReadyToStartContainers", report.sandbox && !ended, "", "", report.now);
  put_condition(pod, "Initialized", true, "", "", report.now);
  put_condition(pod, "Ready", unready.empty(), reason, message, report.now);
  put_condition(pod, "ContainersReady", unready.empty(), reason, message, report.now);
  put_condition(pod, "PodScheduled", true, "", "", report.now);

  JsonObject& status = pod.get_object()["status"].get_object();
  status["phase"] = phase;
  status["startTime"] = report.started;
  status["hostIP"] = report.host;
  status["hostIPs"] = JsonArray{JsonObject{{"ip", report.host}}};
  if (report.sandbox && !report.address.empty()) {
    status["podIP"] = report.address;
    status["podIPs"] = JsonArray{JsonObject{{"ip", report.address}}};
  }
  status["containerStatuses"] = std::move(containers);
  return pod;
}

}  // namespace nvdra::sandbox
