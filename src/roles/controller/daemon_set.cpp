#include "roles/controller/daemon_set.hpp"

#include "roles/common/names.hpp"
#include "roles/controller/objects.hpp"

#include <fmt/format.h>

#include <algorithm>

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

const Json& pod_template(const Json& daemon_set) {
  static const Json nothing = JsonObject{};
  const Json* found = find(daemon_set, "spec/template");
  return found ? *found : nothing;
}

const Json& first_container(const Json& daemon_set) {
  static const Json nothing = JsonObject{};
  const JsonArray& all = array_or_empty(pod_template(daemon_set), "spec/containers");
  return all.empty() ? nothing : all.front();
}

const Json* named(const JsonArray& list, std::string_view name) {
  auto found =
      std::ranges::find(list, name, [](const Json& entry) { return text_or_empty(entry, "name"); });
  return found == list.end() ? nullptr : &*found;
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

bool daemon_set_made_for(const k8s::Object& object, const DomainUid& uid) {
  const Json labels = {{domain_label, uid.value}};
  const Json* label = object.label(domain_label);
  if (label && *label != Json(uid.value)) return false;
  if (object.name() != daemon_object_name(uid)) return false;
  const Json* selector = find(object.json(), "spec/selector/matchLabels");
  if (!selector || *selector != labels) return false;
  const JsonArray& claims = array_or_empty(pod_template(object.json()), "spec/resourceClaims");
  return std::ranges::any_of(claims, [&](const Json& claim) {
    return text_or_empty(claim, "resourceClaimTemplateName") == daemon_object_name(uid);
  });
}

Fit fit(const k8s::Object& actual, const Json& wanted) {
  if (contains(pod_template(actual.json()), pod_template(wanted))) return Fit::same;
  const Json* written = actual.annotation(template_digest_annotation);
  return written && *written == Json(digest(pod_template(wanted))) ? Fit::edited : Fit::outdated;
}

std::string differences(const k8s::Object& actual, const Json& wanted) {
  const Json& now = first_container(actual.json());
  const Json& then = first_container(wanted);
  std::vector<std::string> names;
  auto compare = [&](const Json& left, const Json& right, std::string_view key) {
    const Json* value = get(right, key);
    const Json* there = get(left, key);
    if (value && (!there || !contains(*there, *value))) names.emplace_back(key);
  };
  for (const char* key : {"image", "command", "resources"}) compare(now, then, key);
  const JsonArray& there = array_or_empty(now, "env");
  for (const Json& wished : array_or_empty(then, "env")) {
    const Json* found = named(there, text_or_empty(wished, "name"));
    if (!found || !contains(*found, wished)) names.emplace_back(text_or_empty(wished, "name"));
  }
  for (const Json& extra : there)
    if (std::string_view name = text_or_empty(extra, "name");
        !named(array_or_empty(then, "env"), name))
      names.emplace_back(name);
  for (const auto& item : object_or_empty(pod_template(wanted), "spec"))
    if (item.key() != "containers")
      compare(pod_template(actual.json()).at("spec"), pod_template(wanted).at("spec"), item.key());
  return names.empty() ? "its pod template" : fmt::format("{}", fmt::join(names, ", "));
}

Json roll_out_patch(const k8s::Object& actual, const Json& wanted) {
  const Json& metadata = wanted.at("metadata");
  JsonArray patch{
      {{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", actual.version()}}};
  if (!find(actual.json(), "metadata/annotations"))
    patch.push_back({{"op", "add"}, {"path", "/metadata/annotations"}, {"value", JsonObject{}}});
  patch.push_back({{"op", "add"},
                   {"path",
                    "/metadata/annotations/resource.nvidia.com~1"
                    "computeDomain.daemonTemplateDigest"},
                   {"value", metadata.at("annotations").at(template_digest_annotation)}});
  patch.push_back({{"op", "replace"}, {"path", "/spec/template"}, {"value", pod_template(wanted)}});
  return patch;
}

}  // namespace nvdra::roles::controller
