#include "k8s/conditions.hpp"

#include <algorithm>

namespace nvdra::k8s {
namespace {

constexpr std::size_t longest_message = 32768;  // the API's limit

auto is_of(std::string_view type) {
  return [type](const Json& condition) { return text_or_empty(condition, "type") == type; };
}

Json render(const Condition& wanted, std::string_view since) {
  JsonObject json{{"type", wanted.type},
                  {"status", wanted.status},
                  {"reason", wanted.reason},
                  {"message", wanted.message.substr(0, longest_message)},
                  {"lastTransitionTime", since}};
  if (wanted.observed_generation > 0) json["observedGeneration"] = wanted.observed_generation;
  return json;
}

}  // namespace

ConditionChange set_condition(const JsonArray& conditions, const Condition& wanted,
                              std::string_view now) {
  JsonArray next = conditions;
  auto at = std::ranges::find_if(next, is_of(wanted.type));
  if (at == next.end()) {
    next.push_back(render(wanted, now));
    return {std::move(next), true};
  }
  bool moved = text_or_empty(*at, "status") != wanted.status;
  std::string since(moved ? now : text_or_empty(*at, "lastTransitionTime"));
  Json changed = render(wanted, since.empty() ? now : since);
  if (changed == *at) return {std::move(next), false};
  *at = std::move(changed);
  return {std::move(next), true};
}

ConditionChange remove_condition(const JsonArray& conditions, std::string_view type) {
  JsonArray next;
  std::ranges::remove_copy_if(conditions, std::back_inserter(next), is_of(type));
  bool changed = next.size() != conditions.size();
  return {std::move(next), changed};
}

const Json* find_condition(const JsonArray& conditions, std::string_view type) {
  auto at = std::ranges::find_if(conditions, is_of(type));
  return at == conditions.end() ? nullptr : &*at;
}

bool is_true(const JsonArray& conditions, std::string_view type) {
  const Json* condition = find_condition(conditions, type);
  return condition && text_or_empty(*condition, "status") == "True";
}

}  // namespace nvdra::k8s
