#include "sandbox/store_cel.hpp"

#include "base/try.hpp"

#include <fmt/format.h>

#include <charconv>
#include <regex>

namespace nvdra::sandbox {
namespace {

using Value = Result<Json>;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Value both_or_error(const Value& left, const Value& right, bool decisive) {
  auto is = [](const Value& value, bool wanted) {
    return value && value->is_bool() && value->get_bool() == wanted;
  };
  if (is(left, decisive) || is(right, decisive)) return Json(decisive);
  if (is(left, !decisive) && is(right, !decisive)) return Json(!decisive);
  if (!left) return left;
  if (!right) return right;
  return refuse("no such overload: a logical operator needs booleans");
}

Value compare(std::string_view op, const Json& left, const Json& right) {
  if (op == "==") return Json(left == right);
  if (op == "!=") return Json(left != right);
  if (op == "in") {
    if (const JsonObject* object = right.if_object())
      return Json(left.is_string() && object->contains(left.get_string()));
    if (const JsonArray* list = right.if_array())
      return Json(std::find(list->begin(), list->end(), left) != list->end());
    return refuse("no such overload: in needs a list or a map");
  }
  int order = 0;
  if (left.is_string() && right.is_string()) {
    order = left.get_string().compare(right.get_string());
  } else if (left.is_number() && right.is_number()) {
    double a = left.to_number<double>();
    double b = right.to_number<double>();
    order = a < b ? -1 : (a > b ? 1 : 0);
  } else {
    return refuse(fmt::format("no such overload: {} of values of different types", op));
  }
  if (op == "<") return Json(order < 0);
  if (op == "<=") return Json(order <= 0);
  return Json(op == ">" ? order > 0 : order >= 0);
}

Value call(std::string_view name, const std::vector<Json>& arguments) {
  if (name == "size" && arguments.size() == 1) {
    const Json& value = arguments[0];
    if (value.is_string()) return Json(value.get_string().size());
    if (value.is_array()) return Json(value.get_array().size());
    if (value.is_object()) return Json(value.get_object().size());
  }
  if (arguments.size() == 2 && arguments[0].is_string() && arguments[1].is_string()) {
    std::string_view text = arguments[0].get_string();
    std::string_view part = arguments[1].get_string();
    if (name == "startsWith") return Json(text.starts_with(part));
    if (name == "endsWith") return Json(text.ends_with(part));
    if (name == "contains") return Json(text.find(part) != std::string_view::npos);
    if (name == "matches") {
      try {
        return Json(std::regex_search(std::string(text), std::regex(std::string(part))));
      } catch (const std::regex_error&) {
        return refuse(fmt::format("{} is no regular expression", part));
      }
    }
  }
  return refuse(fmt::format("no such overload: {}()", name));
}

// Parses and evaluates in one pass. A syntax error ends everything; an evaluation error is a value.
class Evaluator {
public:
  Evaluator(std::string_view text, const CelVariables& variables)
      : text_(text), variables_(variables) {}

  Value run() {
    Value value = conditional();
    skip_space();
    if (!syntax_.empty()) return refuse(syntax_);
    if (at_ != text_.size()) return refuse(unexpected());
    return value;
  }

private:
  std::string unexpected() const {
    return fmt::format("syntax error at offset {} of the expression: {}", at_, text_);
  }
  Value broken() {
    if (syntax_.empty()) syntax_ = unexpected();
    at_ = text_.size();
    return refuse(syntax_);
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    if (is_word(token.back()) && at_ + token.size() < text_.size() &&
        is_word(text_[at_ + token.size()]))
      return false;
    at_ += token.size();
    return true;
  }

  Value conditional() {
    Value condition = disjunction();
    if (!take("?")) return condition;
    Value yes = conditional();
    if (!take(":")) return broken();
    Value no = conditional();
    if (!condition) return condition;
    if (!condition->is_bool()) return refuse("no such overload: ?: needs a boolean");
    return condition->get_bool() ? yes : no;
  }
  Value disjunction() {
    Value left = conjunction();
    while (take("||")) left = both_or_error(left, conjunction(), true);
    return left;
  }
  Value conjunction() {
    Value left = relation();
    while (take("&&")) left = both_or_error(left, relation(), false);
    return left;
  }
  Value relation() {
    Value left = sum();
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
      if (!take(op)) continue;
      Value right = sum();
      if (!left) return left;
      if (!right) return right;
      return compare(op, *left, *right);
    }
    return left;
  }
  Value sum() {
    Value left = unary();
    for (;;) {
      bool plus = take("+");
      if (!plus && !take("-")) return left;
      Value right = unary();
      if (!left || !right) {
        left = left ? right : left;
      } else if (plus && left->is_string() && right->is_string()) {
        left = Json(std::string(left->get_string()) + std::string(right->get_string()));
      } else if (left->is_int64() && right->is_int64()) {
        std::int64_t b = right->get_int64();
        left = Json(left->get_int64() + (plus ? b : -b));
      } else {
        left = refuse("no such overload: + or -");
      }
    }
  }
  Value unary() {
    skip_space();
    if (text_.substr(at_).starts_with("!=") || !take("!")) return postfix();
    Value value = unary();
    if (value && !value->is_bool()) return refuse("no such overload: ! needs a boolean");
    return value ? Value(Json(!value->get_bool())) : value;
  }
  Value postfix() {
    Value value = primary();
    for (;;) {
      if (take("[")) {
        Value index = conditional();
        if (!take("]")) return broken();
        value = element(value, index);
      } else if (take(".")) {
        std::string_view name = word();
        if (name.empty()) return broken();
        value = take("(") ? method(name, value) : member(value, name);
      } else {
        return value;
      }
    }
  }
  Value member(const Value& value, std::string_view name) {
    if (!value) return value;
    const Json* found = get(*value, name);
    return found ? Value(*found) : Value(refuse(fmt::format("no such key: {}", name)));
  }
  Value element(const Value& value, const Value& index) {
    if (!value) return value;
    if (!index) return index;
    if (index->is_string()) return member(value, index->get_string());
    const JsonArray* list = value->if_array();
    if (list && index->is_int64() && index->get_int64() >= 0 &&
        static_cast<std::size_t>(index->get_int64()) < list->size())
      return (*list)[static_cast<std::size_t>(index->get_int64())];
    return refuse("index out of bounds");
  }
  Value method(std::string_view name, const Value& receiver) {
    std::vector<Json> values;
    Result<void> taken = arguments(values);
    if (!receiver) return receiver;
    if (!taken) return std::move(taken).failure();
    values.insert(values.begin(), *receiver);
    return call(name, values);
  }
  Result<void> arguments(std::vector<Json>& values) {
    Result<void> first = ok();
    if (take(")")) return first;
    do {
      Value value = conditional();
      if (value)
        values.push_back(*std::move(value));
      else if (first)
        first = std::move(value).failure();
    } while (take(","));
    if (!take(")")) return broken().failure();
    return first;
  }
  std::string_view word() {
    skip_space();
    std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  Value quoted(char quote) {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_];
    }
    if (at_ == text_.size()) return broken();
    ++at_;
    return Json(text);
  }
  Value number() {
    std::int64_t value = 0;
    auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (failed != std::errc{}) return broken();
    at_ = static_cast<std::size_t>(end - text_.data());
    return Json(value);
  }
  Value list() {
    JsonArray items;
    while (!take("]")) {
      Value item = conditional();
      if (!syntax_.empty() || at_ == text_.size()) return broken();
      if (!item) return item;
      items.push_back(*std::move(item));
      take(",");
    }
    return Json(std::move(items));
  }
  Value primary() {
    skip_space();
    if (at_ == text_.size()) return broken();
    char c = text_[at_];
    if (take("(")) {
      Value value = conditional();
      return take(")") ? value : broken();
    }
    if (take("[")) return list();
    if (c == '\'' || c == '"') return quoted(c);
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    std::string_view name = word();
    if (name.empty()) return broken();
    if (name == "true" || name == "false") return Json(name == "true");
    if (name == "null") return Json();
    if (name == "has" && take("(")) {
      Value value = conditional();
      return take(")") ? Value(Json(value.has_value())) : broken();
    }
    if (take("(")) {
      std::vector<Json> values;
      TRY_VOID(arguments(values));
      return call(name, values);
    }
    auto variable = variables_.find(name);
    if (variable != variables_.end()) return variable->second;
    return refuse(fmt::format("undeclared reference to '{}'", name));
  }

  std::string_view text_;
  const CelVariables& variables_;
  std::size_t at_ = 0;
  std::string syntax_;
};

}  // namespace

Result<Json> evaluate_cel(std::string_view expression, const CelVariables& variables) {
  return Evaluator(expression, variables).run();
}

Result<bool> evaluate_condition(std::string_view expression, const CelVariables& variables) {
  TRY(Json value, evaluate_cel(expression, variables));
  if (!value.is_bool())
    return refuse(fmt::format("the expression is no condition: {}", expression));
  return value.get_bool();
}

}  // namespace nvdra::sandbox
