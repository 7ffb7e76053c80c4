#include "base/try.hpp"
#include "sandbox/store_error.hpp"
#include "sandbox/store_patch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

struct KeyedList {
  std::string_view field;
  std::string_view key;
};

constexpr KeyedList keyed_lists[] = {
    {"conditions", "type"},
    {"containers", "name"},
    {"env", "name"},
    {"ephemeralContainers", "name"},
    {"finalizers", "="},
    {"hostAliases", "ip"},
    {"imagePullSecrets", "name"},
    {"initContainers", "name"},
    {"ownerReferences", "uid"},
    {"podIPs", "ip"},
    {"ports", "containerPort"},
    {"resourceClaimStatuses", "name"},
    {"resourceClaims", "name"},
    {"reservedFor", "uid"},
    {"secrets", "name"},
    {"topologySpreadConstraints", "topologyKey"},
    {"volumeDevices", "devicePath"},
    {"volumeMounts", "mountPath"},
    {"volumes", "name"},
};

constexpr std::string_view delete_from = "$deleteFromPrimitiveList/";
constexpr std::string_view element_order = "$setElementOrder/";

bool is_set(const JsonArray& list) {
  return std::ranges::all_of(list, [](const Json& item) { return item.is_primitive(); });
}

Json* find_item(JsonArray& list, std::string_view key, const Json& like) {
  const Json* wanted = get(like, key);
  for (Json& item : list) {
    const Json* value = get(item, key);
    if (wanted && value && *value == *wanted) return &item;
  }
  return nullptr;
}

void erase_item(JsonArray& list, const Json* item) {
  list.erase(list.begin() + (item - list.data()));
}

Result<Json> merge_object(Json target, const JsonObject& patch);

// Services list ports by "port"; containers by "containerPort".
std::string_view key_in(std::string_view field, const JsonArray& patch) {
  std::string_view key = merge_key(field);
  if (field == "ports" && !patch.empty() && !get(patch.front(), key)) return "port";
  return key;
}

Result<Json> merge_list(std::string_view field, Json target, const JsonArray& patch) {
  std::string_view key = key_in(field, patch);
  if (key.empty()) return Json(patch);
  if (!target.is_array()) target = JsonArray{};
  JsonArray& list = target.get_array();
  if (std::ranges::any_of(patch, [](const Json& item) {
        return text_or_empty(item, "$patch") == "replace" && item.get_object().size() == 1;
      }))
    list.clear();
  for (const Json& item : patch) {
    std::string_view directive = text_or_empty(item, "$patch");
    if (directive == "replace" && item.get_object().size() == 1) continue;
    if (key == "=") {
      if (std::ranges::find(list, item) == list.end()) list.push_back(item);
      continue;
    }
    if (!get(item, key))
      return deny(
          Reason::bad_request,
          fmt::format("map: {} does not contain declared merge key: {}", to_text(item), key));
    Json* existing = find_item(list, key, item);
    if (directive == "delete") {
      if (existing) erase_item(list, existing);
      continue;
    }
    TRY(Json merged, merge_object(existing ? *existing : Json(JsonObject{}), item.get_object()));
    if (existing)
      *existing = std::move(merged);
    else
      list.push_back(std::move(merged));
  }
  return target;
}

void remove_primitives(Json& target, const Json& values) {
  if (!target.is_array() || !values.is_array()) return;
  JsonArray kept;
  for (const Json& item : target.get_array())
    if (std::ranges::find(values.get_array(), item) == values.get_array().end())
      kept.push_back(item);
  target = std::move(kept);
}

void retain_keys(JsonObject& object, const Json& keys) {
  if (!keys.is_array()) return;
  std::vector<std::string> dropped;
  for (const auto& [key, value] : object)
    if (std::ranges::find(keys.get_array(), Json(key)) == keys.get_array().end())
      dropped.emplace_back(key);
  for (const std::string& key : dropped) object.erase(key);
}

Result<Json> merge_object(Json target, const JsonObject& patch) {
  if (const Json* directive = patch.if_contains("$patch"); directive && *directive == "replace") {
    JsonObject whole = patch;
    whole.erase("$patch");
    return Json(std::move(whole));
  }
  if (!target.is_object()) target = JsonObject{};
  JsonObject& object = target.get_object();
  if (const Json* keys = patch.if_contains("$retainKeys")) retain_keys(object, *keys);
  for (const auto& [name, change] : patch) {
    std::string_view key = name;
    if (key == "$patch" || key == "$retainKeys" || key.starts_with(element_order)) continue;
    if (key.starts_with(delete_from)) {
      Json* list = object.if_contains(key.substr(delete_from.size()));
      if (list) remove_primitives(*list, change);
    } else if (change.is_null() || text_or_empty(change, "$patch") == "delete") {
      object.erase(key);
    } else if (change.is_object()) {
      TRY(Json merged, merge_object(object[key], change.get_object()));
      object[key] = std::move(merged);
    } else if (change.is_array()) {
      TRY(Json merged, merge_list(key, object[key], change.get_array()));
      object[key] = std::move(merged);
    } else {
      object[key] = change;
    }
  }
  return target;
}

// The key of a custom resource's list, from its schema.
std::string list_key(std::string_view field, const Json* schema) {
  if (!schema) return std::string(merge_key(field));
  if (text_or_empty(*schema, "x-kubernetes-list-type") == "set") return "=";
  const JsonArray& keys = array_or_empty(*schema, "x-kubernetes-list-map-keys");
  return keys.empty() ? std::string() : std::string(keys.front().get_string());
}

const Json* schema_of(const Json* schema, std::string_view field) {
  const Json* properties = schema ? get(*schema, "properties") : nullptr;
  return properties ? get(*properties, field) : nullptr;
}

void apply_list(JsonArray& list, const JsonArray& patch, const Json& previous,
                const std::string& key, const Json* items) {
  if (previous.is_array() && key != "=") {
    for (const Json& old : previous.get_array()) {
      bool still = std::ranges::any_of(patch, [&](const Json& item) {
        const Json* a = get(item, key);
        const Json* b = get(old, key);
        return a && b && *a == *b;
      });
      if (Json* existing = still ? nullptr : find_item(list, key, old)) erase_item(list, existing);
    }
  }
  for (const Json& item : patch) {
    if (key == "=") {
      if (std::ranges::find(list, item) == list.end()) list.push_back(item);
    } else if (Json* existing = find_item(list, key, item)) {
      *existing = apply_merge(*existing, item, nullptr, items);
    } else {
      list.push_back(item);
    }
  }
}

void remove_dropped(Json& target, const Json& patch, const Json& previous) {
  if (!target.is_object() || !previous.is_object()) return;
  for (const auto& [key, old] : previous.get_object())
    if (!get(patch, key)) target.get_object().erase(key);
}

}  // namespace

std::string_view merge_key(std::string_view field) {
  auto row = std::ranges::find(keyed_lists, field, &KeyedList::field);
  return row == std::end(keyed_lists) ? std::string_view{} : row->key;
}

Result<Json> strategic_merge(Json target, const Json& patch) {
  const JsonObject* changes = patch.if_object();
  if (!changes) return deny(Reason::bad_request, "a strategic merge patch is an object");
  return merge_object(std::move(target), *changes);
}

Json apply_merge(Json target, const Json& patch, const Json& previous, const Json* schema) {
  const JsonObject* changes = patch.if_object();
  if (!changes) return patch;
  if (!target.is_object()) target = JsonObject{};
  remove_dropped(target, patch, previous);
  JsonObject& object = target.get_object();
  for (const auto& [key, change] : *changes) {
    const Json* field = schema_of(schema, key);
    const Json* last = get(previous, key);
    Json before = last ? *last : Json();
    Json& current = object[key];
    std::string list = change.is_array() ? list_key(key, field) : std::string();
    if (!list.empty() &&
        (list == "=" || !is_set(change.get_array()) || change.get_array().empty())) {
      if (!current.is_array()) current = JsonArray{};
      apply_list(current.get_array(), change.get_array(), before, list,
                 field ? get(*field, "items") : nullptr);
    } else if (change.is_object()) {
      current = apply_merge(std::move(current), change, before, field);
    } else {
      current = change;
    }
  }
  return target;
}

}  // namespace nvdra::sandbox
