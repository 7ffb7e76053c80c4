#include "sandbox/api_faults.hpp"

#include "base/try.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvdra::sandbox {
namespace {

Result<void> only(const Json& object, std::string_view where,
                  std::initializer_list<std::string_view> known) {
  if (!object.is_object())
    return deny(Reason::bad_request, fmt::format("{} must be an object", where));
  for (const auto& [name, value] : object.get_object())
    if (std::ranges::find(known, std::string_view(name)) == known.end())
      return deny(Reason::bad_request,
                  fmt::format("{} has no field {}", where, std::string_view(name)));
  return ok();
}

bool part_matches(const Json& match, std::string_view field, std::string_view value) {
  std::string_view wanted = text_or_empty(match, field);
  return wanted.empty() || wanted == "*" || wanted == value;
}

bool matches(const Json& match, const Asked& asked) {
  std::string_view resource = text_or_empty(match, "resource");
  bool same_resource = part_matches(match, "resource", asked.resource) ||
                       resource == asked.resource + "." + asked.group;
  return same_resource && part_matches(match, "verb", asked.verb) &&
         part_matches(match, "subresource", asked.subresource) &&
         part_matches(match, "namespace", asked.space) && part_matches(match, "name", asked.name) &&
         asked.user_agent.starts_with(text_or_empty(match, "userAgent"));
}

Result<Fault::Cut> parse_cut(std::string_view text) {
  if (text.empty()) return Fault::Cut::no;
  if (text == "before") return Fault::Cut::before;
  if (text == "after") return Fault::Cut::after;
  if (text == "body") return Fault::Cut::body;
  return deny(Reason::bad_request,
              fmt::format("cut is before, after or body of a fault rule, not {}", text));
}

}  // namespace

Result<Faults::Rule> Faults::parse(const Json& text) const {
  TRY_VOID(only(text, "a fault rule",
                {"match", "skip", "count", "status", "reason", "message", "retryAfterSeconds",
                 "delayMilliseconds", "cut", "watch"}));
  if (const Json* match = get(text, "match")) {
    TRY_VOID(only(*match, "match of a fault rule",
                  {"verb", "resource", "subresource", "namespace", "name", "userAgent"}));
  }
  if (const Json* watch = get(text, "watch")) {
    TRY_VOID(only(*watch, "watch of a fault rule", {"dropEvents", "silent", "endAfterEvents"}));
  }
  TRY(Fault::Cut cut, parse_cut(text_or_empty(text, "cut")));
  Fault fault;
  fault.cut = cut;
  fault.status = static_cast<int>(int_or(text, "status", 0));
  if (fault.status != 0 && (fault.status < 400 || fault.status > 599))
    return deny(Reason::bad_request, "status of a fault rule is 400 to 599");
  fault.reason = text_or_empty(text, "reason");
  fault.message = text_or_empty(text, "message");
  if (get(text, "retryAfterSeconds")) fault.retry_after = int_or(text, "retryAfterSeconds", 1);
  fault.delay = std::chrono::milliseconds(int_or(text, "delayMilliseconds", 0));
  fault.drop_events = static_cast<std::size_t>(int_or(text, "watch/dropEvents", 0));
  fault.silent = bool_or(text, "watch/silent", false);
  fault.end_after = static_cast<std::size_t>(int_or(text, "watch/endAfterEvents", 0));
  return Rule{text, std::move(fault), int_or(text, "skip", 0), int_or(text, "count", 1)};
}

Result<void> Faults::add(const Json& rules) {
  std::list<Rule> parsed;
  JsonArray one{rules};
  for (const Json& text : rules.is_array() ? rules.get_array() : one) {
    TRY(Rule rule, parse(text));
    parsed.push_back(std::move(rule));
  }
  rules_.splice(rules_.end(), parsed);
  return ok();
}

Json Faults::to_json() const {
  JsonArray list;
  for (const Rule& rule : rules_) {
    JsonObject text = rule.text.get_object();
    text["hits"] = rule.hits;
    list.push_back(std::move(text));
  }
  return list;
}

std::optional<Fault> Faults::decide(const Asked& asked) {
  static const Json everything = JsonObject{};
  for (Rule& rule : rules_) {
    const Json* match = get(rule.text, "match");
    if (!matches(match ? *match : everything, asked)) continue;
    if (rule.count > 0 && rule.hits >= rule.count) continue;
    if (rule.seen++ < rule.skip) continue;
    ++rule.hits;
    return rule.fault;
  }
  return std::nullopt;
}

}  // namespace nvdra::sandbox
