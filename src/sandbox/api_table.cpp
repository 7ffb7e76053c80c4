#include "sandbox/api_table.hpp"

#include "sandbox/api_columns.hpp"
#include "sandbox/store_selector.hpp"

#include <fmt/format.h>

#include <ctime>

namespace nvdra::sandbox {
namespace {

std::string duration_text(std::int64_t seconds) {
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return fmt::format("{}s", seconds);
  std::int64_t minutes = seconds / 60;
  if (minutes < 10)
    return seconds % 60 ? fmt::format("{}m{}s", minutes, seconds % 60)
                        : fmt::format("{}m", minutes);
  if (minutes < 180) return fmt::format("{}m", minutes);
  std::int64_t hours = minutes / 60;
  if (hours < 8)
    return minutes % 60 ? fmt::format("{}h{}m", hours, minutes % 60) : fmt::format("{}h", hours);
  if (hours < 48) return fmt::format("{}h", hours);
  if (hours < 192)
    return hours % 24 ? fmt::format("{}d{}h", hours / 24, hours % 24)
                      : fmt::format("{}d", hours / 24);
  return fmt::format("{}d", hours / 24);
}

JsonObject definition(std::string_view name, std::string_view type, int priority) {
  return {{"name", name},
          {"type", type},
          {"format", name == "Name" ? "name" : ""},
          {"description", name},
          {"priority", priority}};
}

Json custom_cell(const Column& column, const Json& object, WallClock::time_point now) {
  std::string text = field_text(object, std::string_view(column.path).substr(1));
  if (column.type == "date") return text.empty() ? Json() : Json(age_text(text, now));
  if (text.empty()) return nullptr;
  return Json(text);
}

}  // namespace

std::string age_text(std::string_view timestamp, WallClock::time_point now) {
  std::tm parts{};
  std::string text(timestamp);
  if (!::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts)) return "<unknown>";
  auto then = WallClock::from_time_t(::timegm(&parts));
  return duration_text(std::chrono::floor<std::chrono::seconds>(now - then).count());
}

JsonArray table_columns(const Resource& resource) {
  JsonArray columns{definition("Name", "string", 0)};
  if (resource.custom) {
    for (const Column& column : resource.columns)
      columns.push_back(definition(column.name, column.type, column.priority));
    if (resource.columns.empty()) columns.push_back(definition("Age", "date", 0));
    return columns;
  }
  for (const PrintedColumn& column : printed_columns(resource.type.plural))
    columns.push_back(definition(column.name, "string", column.wide ? 1 : 0));
  return columns;
}

JsonArray table_cells(const Resource& resource, const Json& object, WallClock::time_point now) {
  JsonArray cells{Json(text_or_empty(object, "metadata/name"))};
  std::string created(text_or_empty(object, "metadata/creationTimestamp"));
  if (resource.custom) {
    for (const Column& column : resource.columns) cells.push_back(custom_cell(column, object, now));
    if (resource.columns.empty()) cells.emplace_back(age_text(created, now));
    return cells;
  }
  for (const PrintedColumn& column : printed_columns(resource.type.plural))
    cells.emplace_back(column.cell(object, now));
  return cells;
}

}  // namespace nvdra::sandbox
