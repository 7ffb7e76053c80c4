#include "sandbox/crd_yaml.hpp"

#include "base/try.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>

namespace nvdra::sandbox {
namespace {

constexpr int max_depth = 64;

Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return Json(text);  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (auto [at, failed] = std::from_chars(text.data(), end, whole);
      failed == std::errc{} && at == end)
    return whole;
  bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  double real = 0;
  if (auto [at, failed] = std::from_chars(text.data(), end, real);
      numeric && failed == std::errc{} && at == end)
    return real;
  return Json(text);
}

Result<Json> convert(const YAML::Node& node, int depth) {
  if (depth > max_depth) return refuse("the YAML is nested too deeply");
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null: return Json();
    case YAML::NodeType::Scalar: return scalar(node);
    case YAML::NodeType::Sequence: {
      JsonArray list;
      for (const YAML::Node& item : node) {
        TRY(Json value, convert(item, depth + 1));
        list.push_back(std::move(value));
      }
      return Json(std::move(list));
    }
    case YAML::NodeType::Map: {
      JsonObject object;
      for (const auto& pair : node) {
        if (!pair.first.IsScalar()) return refuse("a key of the YAML is no text");
        TRY(Json value, convert(pair.second, depth + 1));
        object[pair.first.Scalar()] = std::move(value);
      }
      return Json(std::move(object));
    }
  }
  __builtin_unreachable();
}

}  // namespace

Result<std::vector<Json>> parse_yaml(std::string_view text) try {
  std::vector<Json> documents;
  for (const YAML::Node& document : YAML::LoadAll(std::string(text))) {
    if (!document || document.IsNull()) continue;
    TRY(Json value, convert(document, 0));
    documents.push_back(std::move(value));
  }
  return documents;
} catch (const YAML::Exception& bad) {
  return refuse(fmt::format("the YAML is malformed at line {}: {}", bad.mark.line + 1, bad.msg));
}

Result<std::vector<Json>> read_yaml_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return errno_failure("read " + path);
  Result<std::vector<Json>> documents = parse_yaml(text.str());
  if (!documents) return std::move(documents).failure().during(path);
  return documents;
}

}  // namespace nvdra::sandbox
