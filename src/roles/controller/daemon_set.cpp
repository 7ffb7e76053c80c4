#include "roles/controller/daemon_set.hpp"

#include "roles/common/names.hpp"

#include <fmt/format.h>

namespace nvdra::roles::controller {
namespace {

Json variable(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

Json field(std::string_view name, std::string_view path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

JsonArray environment(const DaemonShape& shape) {
  JsonArray variables{variable("LOG_VERBOSITY", std::to_string(shape.verbosity)),
                      variable("MAX_NODES_PER_IMEX_DOMAIN", std::to_string(shape.max_nodes)),
                      variable("NVIDIA_VISIBLE_DEVICES", "void"),
                      field("NODE_NAME", "spec.nodeName"),
                      field("POD_IP", "status.podIP"),
                      field("POD_UID", "metadata.uid"),
                      field("POD_NAME", "metadata.name"),
                      field("POD_NAMESPACE", "metadata.namespace"),
                      variable("FEATURE_GATES", shape.gates)};
  if (!shape.overrides.empty())
    variables.push_back(variable("IMEX_CONFIG_OVERRIDES", shape.overrides));
  return variables;
}

Json probe(int period, int failures) {
  JsonArray command{"compute-domain-daemon", "-v", "$(LOG_VERBOSITY)", "check"};
  return {{"exec", {{"command", std::move(command)}}},
          {"periodSeconds", period},
          {"timeoutSeconds", 10},
          {"failureThreshold", failures},
          {"successThreshold", 1}};
}

Json resources(const DaemonShape& shape) {
  JsonObject all = shape.resources;
  all["claims"] = JsonArray{JsonObject{{"name", daemon_container}}};
  return all;
}

Json container(const DaemonShape& shape) {
  return {{"name", daemon_container},
          {"image", shape.image},
          {"command", JsonArray{"compute-domain-daemon", "-v", "$(LOG_VERBOSITY)", "run"}},
          {"env", environment(shape)},
          {"resources", resources(shape)},
          {"startupProbe", probe(1, 1200)},
          {"livenessProbe", probe(60, 20)},
          {"readinessProbe", probe(10, 1)}};
}

JsonArray tolerations() {
  JsonArray all;
  for (const char* effect : {"NoSchedule", "NoExecute", "PreferNoSchedule"})
    all.push_back({{"operator", "Exists"}, {"effect", effect}});
  return all;
}

JsonObject pod_spec(const DomainUid& uid, const DaemonShape& shape) {
  Json claim = {{"name", daemon_container}, {"resourceClaimTemplateName", daemon_object_name(uid)}};
  Json ndots = {{"name", "ndots"}, {"value", "1"}};
  JsonObject spec{{"serviceAccountName", daemon_service_account},
                  {"nodeSelector", {{domain_label, uid.value}}},
                  {"tolerations", tolerations()},
                  {"dnsPolicy", "ClusterFirst"},
                  {"dnsConfig", {{"options", JsonArray{ndots}}}},
                  {"resourceClaims", JsonArray{claim}},
                  {"containers", JsonArray{container(shape)}}};
  if (!shape.priority_class.empty()) spec["priorityClassName"] = shape.priority_class;
  if (shape.pull_secrets.empty()) return spec;
  JsonArray secrets;
  for (const std::string& name : shape.pull_secrets) secrets.push_back(JsonObject{{"name", name}});
  spec["imagePullSecrets"] = std::move(secrets);
  return spec;
}

// FNV-1a, 64 bits. Changes only with the text.
std::string digest(const Json& value) {
  std::uint64_t hash = 14695981039346656037U;
  for (char c : to_text(value)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("{:016x}", hash);
}

}  // namespace

Result<JsonObject> parse_daemon_resources(std::string_view text) {
  constexpr std::string_view what =
      "--cd-daemon-resources-json (CD_DAEMON_RESOURCES_JSON; daemon.resources of the chart)";
  if (text.empty()) return JsonObject{};
  Result<Json> json = parse_json(text);
  if (!json || !json->is_object())
    return refuse(fmt::format(
        R"({} is not a JSON object: write for example {{"limits":{{"memory":"256Mi"}}}})", what));
  for (const auto& [kind, amounts] : json->get_object()) {
    if ((kind != "requests" && kind != "limits") || !amounts.is_object())
      return refuse(fmt::format("{} has \"{}\": only the objects requests and limits are possible",
                                what, std::string_view(kind)));
    for (const auto& [resource, amount] : amounts.get_object())
      if (!amount.is_string() && !amount.is_number())
        return refuse(fmt::format("{}: {} of {} is not a quantity, such as \"100m\" or \"256Mi\"",
                                  what, std::string_view(kind), std::string_view(resource)));
  }
  return std::move(json->get_object());
}

Json daemon_set(const DomainUid& uid, const std::string& space, const DaemonShape& shape) {
  Json labels = {{domain_label, uid.value}};
  Json pods = {{"metadata", {{"labels", labels}}}, {"spec", pod_spec(uid, shape)}};
  Json metadata = {{"namespace", space},
                   {"name", daemon_object_name(uid)},
                   {"finalizers", JsonArray{finalizer}},
                   {"labels", labels},
                   {"annotations", {{template_digest_annotation, digest(pods)}}}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "DaemonSet"},
          {"metadata", std::move(metadata)},
          {"spec", {{"selector", {{"matchLabels", labels}}}, {"template", std::move(pods)}}}};
}

}  // namespace nvdra::roles::controller
