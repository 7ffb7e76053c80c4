#include "sandbox/store_selector.hpp"

#include "base/try.hpp"
#include "sandbox/store_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace nvdra::sandbox {
namespace {

using Operator = Requirement::Operator;

std::string_view trim(std::string_view text) {
  std::size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

// Splits at commas that are not inside parentheses.
std::vector<std::string_view> terms_of(std::string_view text) {
  std::vector<std::string_view> terms;
  int depth = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    char c = i < text.size() ? text[i] : ',';
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    std::string_view term = trim(text.substr(from, i - from));
    if (!term.empty()) terms.push_back(term);
    from = i + 1;
  }
  return terms;
}

Failure bad_selector(std::string_view text) {
  return deny(Reason::bad_request, fmt::format("unable to parse requirement: {}", text));
}

// "key in (a, b)"
Result<Requirement> parse_set(std::string_view term, std::size_t paren) {
  std::string_view head = trim(term.substr(0, paren));
  std::size_t space = head.find_last_of(" \t");
  if (space == std::string_view::npos || term.back() != ')') return bad_selector(term);
  std::string_view op = head.substr(space + 1);
  if (op != "in" && op != "notin") return bad_selector(term);
  Requirement requirement{std::string(trim(head.substr(0, space))),
                          op == "in" ? Operator::in : Operator::not_in};
  std::string_view values = term.substr(paren + 1, term.size() - paren - 2);
  for (std::size_t from = 0; from <= values.size();) {
    std::size_t comma = std::min(values.find(',', from), values.size());
    requirement.values.emplace_back(trim(values.substr(from, comma - from)));
    from = comma + 1;
  }
  return requirement;
}

Result<Requirement> parse_term(std::string_view term) {
  if (std::size_t paren = term.find('('); paren != std::string_view::npos)
    return parse_set(term, paren);
  std::size_t equals = term.find('=');
  if (equals == std::string_view::npos) {
    bool absent = term.front() == '!';
    std::string_view key = trim(absent ? term.substr(1) : term);
    if (key.empty() || key.find(' ') != std::string_view::npos) return bad_selector(term);
    return Requirement{std::string(key), absent ? Operator::does_not_exist : Operator::exists};
  }
  bool negative = equals > 0 && term[equals - 1] == '!';
  std::string_view key = trim(term.substr(0, negative ? equals - 1 : equals));
  std::string_view value = term.substr(equals + 1);
  if (!value.empty() && value.front() == '=') value.remove_prefix(1);
  if (key.empty()) return bad_selector(term);
  return Requirement{
      std::string(key), negative ? Operator::not_in : Operator::in, {std::string(trim(value))}};
}

bool numeric(const std::string* value, const std::vector<std::string>& bound, Operator op) {
  if (!value || bound.empty()) return false;
  auto number = [](const std::string& text) -> std::optional<std::int64_t> {
    std::int64_t parsed = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return parsed;
  };
  auto left = number(*value);
  auto right = number(bound.front());
  if (!left || !right) return false;
  return op == Operator::greater ? *left > *right : *left < *right;
}

}  // namespace

bool Requirement::met_by(const std::string* value) const {
  switch (op) {
    case Operator::exists: return value;
    case Operator::does_not_exist: return !value;
    case Operator::in: return value && std::ranges::find(values, *value) != values.end();
    case Operator::not_in: return !value || std::ranges::find(values, *value) == values.end();
    case Operator::greater:
    case Operator::less: return numeric(value, values, op);
  }
  __builtin_unreachable();
}

bool Selector::matches_labels(const JsonObject& labels) const {
  return std::ranges::all_of(requirements, [&](const Requirement& requirement) {
    const Json* label = labels.if_contains(requirement.key);
    if (!label || !label->is_string()) return requirement.met_by(nullptr);
    std::string value(label->get_string());
    return requirement.met_by(&value);
  });
}

bool Selector::matches_fields(const Json& object) const {
  return std::ranges::all_of(requirements, [&](const Requirement& requirement) {
    std::string value = field_text(object, requirement.key);
    return requirement.met_by(&value);
  });
}

Result<Selector> parse_label_selector(std::string_view text) {
  Selector selector;
  for (std::string_view term : terms_of(text)) {
    TRY(Requirement requirement, parse_term(term));
    selector.requirements.push_back(std::move(requirement));
  }
  return selector;
}

Result<Selector> parse_field_selector(std::string_view text, const Resource& resource) {
  Selector selector;
  for (std::string_view term : terms_of(text)) {
    TRY(Requirement requirement, parse_term(term));
    if (requirement.op != Operator::in && requirement.op != Operator::not_in)
      return deny(Reason::bad_request,
                  fmt::format("invalid selector: '{}'; can't understand '{}'", text, term));
    bool known = requirement.key == "metadata.name" ||
                 (requirement.key == "metadata.namespace" && resource.type.namespaced) ||
                 std::ranges::find(resource.fields, requirement.key) != resource.fields.end();
    if (!known)
      return deny(Reason::bad_request,
                  fmt::format("field label not supported: {}", requirement.key));
    selector.requirements.push_back(std::move(requirement));
  }
  return selector;
}

Requirement requirement_of(const Json& expression) {
  Requirement requirement{std::string(text_or_empty(expression, "key"))};
  std::string_view op = text_or_empty(expression, "operator");
  if (op == "In") requirement.op = Operator::in;
  if (op == "NotIn") requirement.op = Operator::not_in;
  if (op == "DoesNotExist") requirement.op = Operator::does_not_exist;
  if (op == "Gt") requirement.op = Operator::greater;
  if (op == "Lt") requirement.op = Operator::less;
  for (const Json& value : array_or_empty(expression, "values"))
    if (value.is_string()) requirement.values.emplace_back(value.get_string());
  return requirement;
}

Selector selector_of(const Json& label_selector) {
  Selector selector;
  for (const auto& [key, value] : object_or_empty(label_selector, "matchLabels"))
    if (value.is_string())
      selector.requirements.push_back(
          {std::string(key), Operator::in, {std::string(value.get_string())}});
  for (const Json& expression : array_or_empty(label_selector, "matchExpressions"))
    selector.requirements.push_back(requirement_of(expression));
  return selector;
}

std::string field_text(const Json& object, std::string_view dotted_path) {
  const Json* at = &object;
  while (at && !dotted_path.empty()) {
    std::size_t dot = dotted_path.find('.');
    at = get(*at, dotted_path.substr(0, dot));
    dotted_path = dot == std::string_view::npos ? std::string_view{} : dotted_path.substr(dot + 1);
  }
  if (!at || at->is_null() || at->is_object() || at->is_array()) return {};
  return at->is_string() ? std::string(at->get_string()) : to_text(*at);
}

}  // namespace nvdra::sandbox
