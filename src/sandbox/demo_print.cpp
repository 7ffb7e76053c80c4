#include "sandbox/demo_print.hpp"

#include "sandbox/crd_yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace nvdra::sandbox {
namespace {

std::string cell_text(const Json& cell) {
  if (cell.is_string()) return std::string(cell.get_string());
  return cell.is_null() ? "<none>" : to_text(cell);
}

bool is_time(std::string_view text) {
  return text.size() > 10 && text[4] == '-' && text[7] == '-' && text[10] == 'T';
}

// Texts that YAML would take for something else are quoted.
std::string scalar_text(const Json& value) {
  if (!value.is_string()) return to_text(value);
  const std::string_view text = value.get_string();
  const Result<std::vector<Json>> read = parse_yaml(text);
  const bool plain = read && read->size() == 1 && read->front() == value &&
                     text.find_first_of("#\n") == std::string_view::npos && !is_time(text);
  return plain ? std::string(text) : to_text(value);
}

bool is_empty(const Json& value) {
  return (value.is_object() && value.get_object().empty()) ||
         (value.is_array() && value.get_array().empty());
}

// A value behind a key: on the same line, or below it.
void put_yaml(std::string& text, const Json& value, std::size_t indent) {
  const std::string blanks(indent, ' ');
  if (value.is_array()) {
    for (const Json& one : value.get_array()) {
      std::string item;
      put_yaml(item, one, indent + 2);
      if (!item.starts_with(' ')) item.insert(0, indent + 2, ' ');
      item.replace(indent, 2, "- ");
      text += item;
    }
    return;
  }
  if (!value.is_object() || value.get_object().empty()) {
    text += is_empty(value) ? to_text(value) + "\n" : scalar_text(value) + "\n";
    return;
  }
  std::map<std::string_view, const Json*> sorted;
  for (const auto& [key, inner] : value.get_object()) sorted[key] = &inner;
  for (const auto& [key, inner] : sorted) {
    text += fmt::format("{}{}:", blanks, key);
    const bool below = (inner->is_object() || inner->is_array()) && !is_empty(*inner);
    text += below ? "\n" : " ";
    if (is_empty(*inner))
      text += to_text(*inner) + "\n";
    else
      put_yaml(text, *inner, inner->is_array() ? indent : indent + 2);
  }
}

std::string state_text(const Json& status) {
  for (const auto& [kind, detail] : object_or_empty(status, "state")) {
    const std::string_view reason = text_or_empty(detail, "reason");
    return reason.empty() ? std::string(kind)
                          : fmt::format("{} ({})", std::string_view(kind), reason);
  }
  return "unknown";
}

}  // namespace

std::string print_rows(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += indent;
    for (std::size_t i = 0; i < row.size(); ++i)
      text += i + 1 < row.size() ? fmt::format("{:<{}}", row[i], widths[i] + 3) : row[i];
    text += "\n";
  }
  return text;
}

std::string print_table(const Resource& resource, const std::vector<k8s::Object>& objects,
                        TableForm form, WallClock::time_point now) {
  const JsonArray columns = table_columns(resource);
  const auto shown = [&](std::size_t i) {
    return form.wide || int_or(columns.at(i), "priority", 0) == 0;
  };
  std::vector<std::vector<std::string>> rows(1);
  if (form.with_space) rows[0].emplace_back("NAMESPACE");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!shown(i)) continue;
    std::string name(text_or_empty(columns[i], "name"));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    rows[0].push_back(std::move(name));
  }
  for (const k8s::Object& object : objects) {
    const JsonArray cells = table_cells(resource, object.json(), now);
    std::vector<std::string>& row = rows.emplace_back();
    if (form.with_space) row.emplace_back(object.space());
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (shown(i)) row.push_back(cell_text(cells[i]));
  }
  return print_rows(rows, "");
}

std::string print_yaml(const Json& object) {
  std::string text;
  put_yaml(text, object, 0);
  return text;
}

std::string print_path(const Json& object, std::string_view path) {
  if (path.starts_with("{.")) path = path.substr(2, path.size() - 3);
  std::string slashes(path);
  std::ranges::replace(slashes, '.', '/');
  const Json* value = find(object, slashes);
  if (!value || value->is_null()) return {};
  return cell_text(*value);
}

std::string describe_pod(const Json& pod, const std::vector<k8s::Object>& events,
                         WallClock::time_point now) {
  const auto line = [](std::string_view name, std::string_view value) {
    return fmt::format("{:<18}{}\n", fmt::format("{}:", name), value);
  };
  std::string text = line("Name", text_or_empty(pod, "metadata/name")) +
                     line("Namespace", text_or_empty(pod, "metadata/namespace")) +
                     line("Node", fmt::format("{}/{}", text_or_empty(pod, "spec/nodeName"),
                                              text_or_empty(pod, "status/hostIP"))) +
                     line("Status", text_or_empty(pod, "status/phase")) + "Containers:\n";
  for (const Json& status : array_or_empty(pod, "status/containerStatuses"))
    text += fmt::format("  {}:\n    {:<14}{}\n    {:<14}{}\n", text_or_empty(status, "name"),
                        "State:", state_text(status),
                        "Ready:", bool_or(status, "ready", false) ? "True" : "False");
  if (events.empty()) return text + "Events:           <none>\n";
  std::vector<std::vector<std::string>> rows = {{"Type", "Reason", "Age", "From", "Message"},
                                                {"----", "------", "----", "----", "-------"}};
  for (const k8s::Object& event : events) {
    const Json& json = event.json();
    rows.push_back({std::string(text_or_empty(json, "type")),
                    std::string(text_or_empty(json, "reason")),
                    age_text(text_or_empty(json, "lastTimestamp"), now),
                    std::string(text_or_empty(json, "source/component")),
                    std::string(text_or_empty(json, "message"))});
  }
  return text + "Events:\n" + print_rows(rows, "  ");
}

}  // namespace nvdra::sandbox
