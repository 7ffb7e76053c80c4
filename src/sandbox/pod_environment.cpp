#include "sandbox/pod_environment.hpp"

#include "base/try.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace nvdra::sandbox {
namespace {

// "a/b" of "metadata.labels['a/b']" when `path` is "metadata.labels".
std::optional<std::string_view> key_in(std::string_view field, std::string_view path) {
  if (!field.starts_with(path)) return std::nullopt;
  field.remove_prefix(path.size());
  if (!field.starts_with("['") || !field.ends_with("']") || field.size() < 4) return std::nullopt;
  return field.substr(2, field.size() - 4);
}

std::optional<std::string> field_of(const Json& pod, std::string_view field,
                                    const PodFacts& facts) {
  constexpr std::array plain = {"metadata.name", "metadata.namespace", "metadata.uid",
                                "spec.nodeName", "spec.serviceAccountName"};
  if (std::ranges::find(plain, field) != plain.end()) {
    std::string path(field);
    std::ranges::replace(path, '.', '/');
    return std::string(text_or_empty(pod, path));
  }
  if (field == "status.podIP" || field == "status.podIPs") return facts.address;
  if (field == "status.hostIP" || field == "status.hostIPs") return facts.host;
  for (const auto& [path, place] : {std::pair{"metadata.labels", "metadata/labels"},
                                    std::pair{"metadata.annotations", "metadata/annotations"}})
    if (const auto key = key_in(field, path)) {
      const Json* all = find(pod, place);
      const Json* value = all ? get(*all, *key) : nullptr;
      return value && value->is_string() ? std::string(value->get_string()) : std::string();
    }
  return std::nullopt;
}

}  // namespace

std::string expand(std::string_view text, const KnownVariables& variables) {
  std::string done;
  while (!text.empty()) {
    const auto dollar = text.find('$');
    done += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const auto end = text.starts_with('(') ? text.find(')') : std::string_view::npos;
    if (text.starts_with('$')) {
      done += '$';
      text.remove_prefix(1);
    } else if (end == std::string_view::npos) {
      done += '$';
    } else {
      const auto known = variables.find(text.substr(1, end - 1));
      done +=
          known == variables.end() ? fmt::format("${}", text.substr(0, end + 1)) : known->second;
      text.remove_prefix(end + 1);
    }
  }
  return done;
}

Result<std::vector<std::string>> environment_of(const Json& pod, const Json& container,
                                                const PodFacts& facts) {
  std::vector<std::string> environment;
  KnownVariables known;
  for (const Json& entry : array_or_empty(container, "env")) {
    const std::string name(text_or_empty(entry, "name"));
    std::string value = expand(text_or_empty(entry, "value"), known);
    if (find(entry, "valueFrom")) {
      const std::string_view field = text_or_empty(entry, "valueFrom/fieldRef/fieldPath");
      std::optional<std::string> found = field_of(pod, field, facts);
      if (!found)
        return refuse(
            fmt::format("env {}: the sandbox knows valueFrom only as fieldRef of a pod's "
                        "metadata, node and addresses",
                        name));
      value = *std::move(found);
    }
    environment.push_back(fmt::format("{}={}", name, value));
    known[name] = std::move(value);
  }
  return environment;
}

KnownVariables variables_of(const std::vector<std::string>& environment) {
  KnownVariables variables;
  for (const std::string& entry : environment)
    if (const auto equals = entry.find('='); equals != std::string::npos)
      variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  return variables;
}

KnownVariables literal_variables(const Json& container) {
  KnownVariables variables;
  for (const Json& entry : array_or_empty(container, "env"))
    if (!find(entry, "valueFrom"))
      variables[std::string(text_or_empty(entry, "name"))] = text_or_empty(entry, "value");
  return variables;
}

std::vector<std::string> expanded(const JsonArray& words, const KnownVariables& variables) {
  std::vector<std::string> list;
  for (const Json& one : words)
    if (one.is_string()) list.push_back(expand(one.get_string(), variables));
  return list;
}

}  // namespace nvdra::sandbox
