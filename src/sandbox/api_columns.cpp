#include "sandbox/api_columns.hpp"

#include "sandbox/api_table.hpp"
#include "sandbox/store_selector.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

using Now = WallClock::time_point;

std::string or_none(std::string_view text) {
  return text.empty() ? "<none>" : std::string(text);
}

std::string age(const Json& object, Now now) {
  return age_text(text_or_empty(object, "metadata/creationTimestamp"), now);
}

template <const char* Path>
std::string field(const Json& object, Now) {
  return field_text(object, Path);
}

template <const char* Path>
std::string count(const Json& object, Now) {
  std::string text = field_text(object, Path);
  return text.empty() ? "0" : text;
}

template <const char* Path>
std::string field_or_none(const Json& object, Now) {
  return or_none(field_text(object, Path));
}

std::string labels_text(const JsonObject& labels) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", std::string_view(key),
                        value.is_string() ? std::string_view(value.get_string()) : "");
  return or_none(text);
}

std::string pod_ready(const Json& pod, Now) {
  std::size_t ready = 0;
  for (const Json& status : array_or_empty(pod, "status/containerStatuses"))
    if (bool_or(status, "ready", false)) ++ready;
  return fmt::format("{}/{}", ready, array_or_empty(pod, "spec/containers").size());
}

std::string container_trouble(const Json& pod) {
  for (const Json& status : array_or_empty(pod, "status/containerStatuses")) {
    for (std::string_view path : {"state/waiting/reason", "state/terminated/reason"})
      if (std::string_view reason = text_or_empty(status, path); !reason.empty())
        return std::string(reason);
  }
  return {};
}

std::string pod_status(const Json& pod, Now) {
  if (find(pod, "metadata/deletionTimestamp")) return "Terminating";
  std::string_view reason = text_or_empty(pod, "status/reason");
  if (!reason.empty()) return std::string(reason);
  std::string trouble = container_trouble(pod);
  return trouble.empty() ? std::string(text_or_empty(pod, "status/phase")) : trouble;
}

std::string pod_restarts(const Json& pod, Now) {
  std::int64_t restarts = 0;
  for (const Json& status : array_or_empty(pod, "status/containerStatuses"))
    restarts += int_or(status, "restartCount", 0);
  return std::to_string(restarts);
}

std::string node_status(const Json& node, Now) {
  std::string text = "Unknown";
  for (const Json& condition : array_or_empty(node, "status/conditions"))
    if (text_or_empty(condition, "type") == "Ready")
      text = text_or_empty(condition, "status") == "True" ? "Ready" : "NotReady";
  return bool_or(node, "spec/unschedulable", false) ? text + ",SchedulingDisabled" : text;
}

std::string node_roles(const Json& node, Now) {
  static constexpr std::string_view prefix = "node-role.kubernetes.io/";
  std::string roles;
  for (const auto& [key, value] : object_or_empty(node, "metadata/labels"))
    if (std::string_view(key).starts_with(prefix))
      roles += (roles.empty() ? "" : ",") + std::string(key).substr(prefix.size());
  return or_none(roles);
}

std::string event_seen(const Json& event, Now now) {
  for (std::string_view path :
       {"series/lastObservedTime", "lastTimestamp", "eventTime", "firstTimestamp"})
    if (std::string_view time = text_or_empty(event, path); !time.empty())
      return age_text(time, now);
  return age(event, now);
}

std::string event_object(const Json& event, Now) {
  std::string kind(text_or_empty(event, "involvedObject/kind"));
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
  return fmt::format("{}/{}", kind, text_or_empty(event, "involvedObject/name"));
}

std::string claim_state(const Json& claim, Now) {
  std::string state = find(claim, "status/allocation") ? "allocated" : "pending";
  if (!array_or_empty(claim, "status/reservedFor").empty()) state += ",reserved";
  return find(claim, "metadata/deletionTimestamp") ? "deleted," + state : state;
}

std::string node_selector(const Json& object, Now) {
  return labels_text(object_or_empty(object, "spec/template/spec/nodeSelector"));
}

std::string data_count(const Json& object, Now) {
  return std::to_string(object_or_empty(object, "data").size());
}

std::string deployment_ready(const Json& object, Now) {
  return fmt::format("{}/{}", int_or(object, "status/readyReplicas", 0),
                     int_or(object, "spec/replicas", 0));
}

std::string job_status(const Json& job, Now) {
  for (const Json& condition : array_or_empty(job, "status/conditions"))
    if (text_or_empty(condition, "status") == "True")
      return std::string(text_or_empty(condition, "type"));
  return "Running";
}

std::string job_completions(const Json& job, Now) {
  return fmt::format("{}/{}", int_or(job, "status/succeeded", 0),
                     int_or(job, "spec/completions", 1));
}

constexpr char phase[] = "status.phase";
constexpr char pod_ip[] = "status.podIP";
constexpr char node_name[] = "spec.nodeName";
constexpr char kubelet[] = "status.nodeInfo.kubeletVersion";
constexpr char type[] = "type";
constexpr char reason[] = "reason";
constexpr char message[] = "message";
constexpr char desired[] = "status.desiredNumberScheduled";
constexpr char current[] = "status.currentNumberScheduled";
constexpr char ready[] = "status.numberReady";
constexpr char updated[] = "status.updatedNumberScheduled";
constexpr char available[] = "status.numberAvailable";
constexpr char updated_replicas[] = "status.updatedReplicas";
constexpr char available_replicas[] = "status.availableReplicas";
constexpr char replicas[] = "spec.replicas";
constexpr char status_replicas[] = "status.replicas";
constexpr char ready_replicas[] = "status.readyReplicas";
constexpr char driver[] = "spec.driver";
constexpr char pool[] = "spec.pool.name";
constexpr char holder[] = "spec.holderIdentity";
constexpr char created[] = "metadata.creationTimestamp";

constexpr PrintedColumn only_age[] = {{"Age", age}};
constexpr PrintedColumn pods[] = {{"Ready", pod_ready},
                                  {"Status", pod_status},
                                  {"Restarts", pod_restarts},
                                  {"Age", age},
                                  {"IP", field_or_none<pod_ip>, true},
                                  {"Node", field_or_none<node_name>, true}};
constexpr PrintedColumn nodes[] = {
    {"Status", node_status}, {"Roles", node_roles}, {"Age", age}, {"Version", field<kubelet>}};
constexpr PrintedColumn namespaces[] = {{"Status", field<phase>}, {"Age", age}};
constexpr PrintedColumn events[] = {{"Last Seen", event_seen},
                                    {"Type", field<type>},
                                    {"Reason", field<reason>},
                                    {"Object", event_object},
                                    {"Message", field<message>}};
constexpr PrintedColumn daemonsets[] = {{"Desired", count<desired>},
                                        {"Current", count<current>},
                                        {"Ready", count<ready>},
                                        {"Up-to-date", count<updated>},
                                        {"Available", count<available>},
                                        {"Node Selector", node_selector},
                                        {"Age", age}};
constexpr PrintedColumn deployments[] = {{"Ready", deployment_ready},
                                         {"Up-to-date", count<updated_replicas>},
                                         {"Available", count<available_replicas>},
                                         {"Age", age}};
constexpr PrintedColumn replicasets[] = {{"Desired", count<replicas>},
                                         {"Current", count<status_replicas>},
                                         {"Ready", count<ready_replicas>},
                                         {"Age", age}};
constexpr PrintedColumn jobs[] = {
    {"Status", job_status}, {"Completions", job_completions}, {"Age", age}};
constexpr PrintedColumn claims[] = {{"State", claim_state}, {"Age", age}};
constexpr PrintedColumn slices[] = {{"Node", field_or_none<node_name>},
                                    {"Driver", field<driver>},
                                    {"Pool", field<pool>},
                                    {"Age", age}};
constexpr PrintedColumn leases[] = {{"Holder", field<holder>}, {"Age", age}};
constexpr PrintedColumn maps[] = {{"Data", data_count}, {"Age", age}};
constexpr PrintedColumn crds[] = {{"Created At", field<created>}};

}  // namespace

std::span<const PrintedColumn> printed_columns(std::string_view plural) {
  struct Row {
    std::string_view plural;
    std::span<const PrintedColumn> columns;
  };
  static constexpr Row rows[] = {
      {"pods", pods},
      {"nodes", nodes},
      {"namespaces", namespaces},
      {"events", events},
      {"daemonsets", daemonsets},
      {"deployments", deployments},
      {"replicasets", replicasets},
      {"jobs", jobs},
      {"resourceclaims", claims},
      {"resourceslices", slices},
      {"leases", leases},
      {"configmaps", maps},
      {"secrets", maps},
      {"customresourcedefinitions", crds},
  };
  auto row = std::ranges::find(rows, plural, &Row::plural);
  return row == std::end(rows) ? std::span<const PrintedColumn>(only_age) : row->columns;
}

}  // namespace nvdra::sandbox
