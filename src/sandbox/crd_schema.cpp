#include "sandbox/crd_schema.hpp"

#include "sandbox/store_cel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

namespace nvdra::sandbox {
namespace {

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

const Json* property(const Json& schema, std::string_view name) {
  const Json* properties = get(schema, "properties");
  const Json* known = properties ? get(*properties, name) : nullptr;
  if (known) return known;
  const Json* others = get(schema, "additionalProperties");
  return others && others->is_object() ? others : nullptr;
}

bool is_envelope(const std::string& path, std::string_view name) {
  return path.empty() && (name == "apiVersion" || name == "kind" || name == "metadata");
}

void prune_at(const Json& schema, Json& value, const std::string& path,
              std::vector<std::string>& unknown) {
  if (JsonArray* list = value.if_array()) {
    const Json* items = get(schema, "items");
    for (std::size_t i = 0; items && i < list->size(); ++i)
      prune_at(*items, (*list)[i], fmt::format("{}[{}]", path, i), unknown);
    return;
  }
  JsonObject* object = value.if_object();
  if (!object) return;
  bool keep = bool_or(schema, "x-kubernetes-preserve-unknown-fields", false);
  std::vector<std::string> dropped;
  for (auto& [name, member] : *object) {
    if (is_envelope(path, name)) continue;
    const Json* field = property(schema, name);
    bool defaulted_null =
        field && member.is_null() && get(*field, "default") && !bool_or(*field, "nullable", false);
    if (field && !defaulted_null) {
      prune_at(*field, member, join(path, name), unknown);
    } else if (!keep) {
      dropped.emplace_back(name);
      if (!field) unknown.push_back(join(path, name));
    }
  }
  for (const std::string& name : dropped) object->erase(name);
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "number") return value.is_number();
  if (type != "integer") return true;
  if (value.is_double()) return std::trunc(value.get_double()) == value.get_double();
  return value.is_number();
}

class Checker {
public:
  std::vector<std::string> errors;

  void check(const Json& schema, const Json& value, const Json* before, const std::string& path) {
    if (value.is_null() && bool_or(schema, "nullable", false)) return;
    std::string_view type = text_or_empty(schema, "type");
    if (bool_or(schema, "x-kubernetes-int-or-string", false)) {
      if (!value.is_string() && !value.is_int64())
        say(path, value, "must be of type int or string");
      return;
    }
    if (!type.empty() && !has_type(value, type)) {
      say(path, value, fmt::format("{} in body must be of type {}", path, type));
      return;
    }
    if (const JsonArray* choices = array_of(schema, "enum"))
      if (std::ranges::find(*choices, value) == choices->end()) not_one_of(path, value, *choices);
    if (value.is_string()) check_string(schema, value, path);
    if (value.is_number()) check_number(schema, value, path);
    if (value.is_array()) check_list(schema, value, before, path);
    if (value.is_object()) check_object(schema, value, before, path);
    check_rules(schema, value, before, path);
  }

private:
  static const JsonArray* array_of(const Json& schema, std::string_view name) {
    const Json* list = get(schema, name);
    return list ? list->if_array() : nullptr;
  }
  void say(const std::string& path, const Json& value, std::string_view what) {
    bool scalar = value.is_primitive();
    errors.push_back(fmt::format("{}: Invalid value: {}: {}", path.empty() ? "<root>" : path,
                                 scalar ? to_text(value) : "\"object\"", what));
  }
  void not_one_of(const std::string& path, const Json& value, const JsonArray& choices) {
    std::string list;
    for (const Json& choice : choices) list += (list.empty() ? "" : ", ") + to_text(choice);
    errors.push_back(
        fmt::format("{}: Unsupported value: {}: supported values: {}", path, to_text(value), list));
  }

  void check_string(const Json& schema, const Json& value, const std::string& path) {
    std::string text(value.get_string());
    auto length = static_cast<std::int64_t>(text.size());
    if (std::int64_t least = int_or(schema, "minLength", 0); length < least)
      say(path, value, fmt::format("{} in body should be at least {} chars long", path, least));
    if (std::int64_t most = int_or(schema, "maxLength", length); length > most)
      errors.push_back(fmt::format("{}: Too long: may not be more than {} bytes", path, most));
    std::string_view pattern = text_or_empty(schema, "pattern");
    if (!pattern.empty() && !std::regex_search(text, std::regex(std::string(pattern))))
      say(path, value, fmt::format("{} in body should match '{}'", path, pattern));
    static const std::regex date_time(
        R"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d))");
    if (text_or_empty(schema, "format") == "date-time" && !std::regex_match(text, date_time))
      say(path, value, fmt::format("{} in body must be of type date-time", path));
  }

  void check_number(const Json& schema, const Json& value, const std::string& path) {
    double number = value.to_number<double>();
    const Json* least = get(schema, "minimum");
    if (least && number < least->to_number<double>())
      say(path, value,
          fmt::format("{} in body should be greater than or equal to {}", path, to_text(*least)));
    const Json* most = get(schema, "maximum");
    if (most && number > most->to_number<double>())
      say(path, value,
          fmt::format("{} in body should be less than or equal to {}", path, to_text(*most)));
  }

  // The identity of an item of a list with keys, as text.
  static std::string identity(const Json& schema, const Json& item) {
    if (text_or_empty(schema, "x-kubernetes-list-type") == "set") return to_text(item);
    std::string identity;
    for (const Json& key : array_or_empty(schema, "x-kubernetes-list-map-keys")) {
      const Json* value = get(item, key.get_string());
      identity += fmt::format("{},", value ? to_text(*value) : "null");
    }
    return identity;
  }

  void check_list(const Json& schema, const Json& value, const Json* before,
                  const std::string& path) {
    const JsonArray& list = value.get_array();
    auto size = static_cast<std::int64_t>(list.size());
    if (std::int64_t most = int_or(schema, "maxItems", size); size > most)
      errors.push_back(
          fmt::format("{}: Too many: {}: must have at most {} items", path, size, most));
    if (std::int64_t least = int_or(schema, "minItems", 0); size < least)
      say(path, value, fmt::format("{} in body should have at least {} items", path, least));
    const Json* items = get(schema, "items");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::string at = fmt::format("{}[{}]", path, i);
      std::string id = identity(schema, list[i]);
      if (!id.empty() && !seen.insert(id).second)
        errors.push_back(fmt::format("{}: Duplicate value: {}", at, to_text(list[i])));
      const Json* old = nullptr;
      if (before && before->is_array() && !id.empty())
        for (const Json& candidate : before->get_array())
          if (identity(schema, candidate) == id) old = &candidate;
      if (items) check(*items, list[i], old, at);
    }
  }

  void check_object(const Json& schema, const Json& value, const Json* before,
                    const std::string& path) {
    for (const Json& name : array_or_empty(schema, "required"))
      if (!get(value, name.get_string()))
        errors.push_back(
            fmt::format("{}: Required value", join(path, std::string_view(name.get_string()))));
    for (const auto& [name, member] : value.get_object()) {
      if (is_envelope(path, name)) continue;
      const Json* field = property(schema, name);
      if (field) check(*field, member, before ? get(*before, name) : nullptr, join(path, name));
    }
  }

  void check_rules(const Json& schema, const Json& value, const Json* before,
                   const std::string& path) {
    for (const Json& entry : array_or_empty(schema, "x-kubernetes-validations")) {
      std::string_view rule = text_or_empty(entry, "rule");
      bool transition = rule.find("oldSelf") != std::string_view::npos;
      if (transition && !before) continue;
      CelVariables variables{{"self", value}};
      if (transition) variables["oldSelf"] = *before;
      Result<bool> held = evaluate_condition(rule, variables);
      if (held && *held) continue;
      std::string_view message = text_or_empty(entry, "message");
      if (!held) {
        say(path, value, fmt::format("rule {}: {}", rule, held.error().text()));
      } else {
        say(path, value, message.empty() ? fmt::format("failed rule: {}", rule) : message);
      }
    }
  }
};

}  // namespace

std::vector<std::string> prune(const Json& schema, Json& object) {
  std::vector<std::string> unknown;
  prune_at(schema, object, "", unknown);
  return unknown;
}

void fill_defaults(const Json& schema, Json& object) {
  if (JsonArray* list = object.if_array()) {
    const Json* items = get(schema, "items");
    if (items)
      for (Json& item : *list) fill_defaults(*items, item);
    return;
  }
  if (!object.is_object()) return;
  for (const auto& [name, field] : object_or_empty(schema, "properties")) {
    Json* member = object.get_object().if_contains(name);
    const Json* otherwise = get(field, "default");
    if (!member && otherwise) {
      object.get_object()[name] = *otherwise;
      member = object.get_object().if_contains(name);
    }
    if (member) fill_defaults(field, *member);
  }
}

std::vector<std::string> schema_errors(const Json& schema, const Json& object, const Json* before) {
  Checker checker;
  checker.check(schema, object, before, "");
  return std::move(checker.errors);
}

}  // namespace nvdra::sandbox
